"""Graph page: drawn neighbourhoods, their tables, and their layout (docs/spec/console.md §2)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from lithos.kernel.actors.threads import Inline
from lithos.memory.service import neighbourhood
from lithos.memory.service.edges import Edges
from lithos.memory.service.neighbourhood import COLOURS, HEIGHT, HUB, KEPT, WIDTH, Drawings, Neighbourhoods
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.edges import Edge
from lithos.search.index.graph_layout import lay_out
from lithos.search.service.search import Search
from tests.server.console.injections import HOSTILE
from tests.server.console.pages import Element
from tests.server.console.visiting import Visitor, visiting
from tests.servers import MISSING_ID, Lithos, serving


async def star(lithos: Lithos, leaves: int, *, size: int = 30) -> list[str]:
    """Create a hub and `leaves` notes. Each note is linked to the hub and to an earlier leaf.

    Return the note ids, starting with the hub.
    """
    ids = [await lithos.create("Hub", "The middle of all.")]
    for number in range(leaves):
        before = f"[[Leaf {number // 2}]]" if number else ""
        ids.append(await lithos.create(f"Leaf {number}", f"See [[Hub]] {before} {'x' * size}."))
    return ids


def nodes_of(page: Element) -> list[str]:
    return [one.attributes["href"] for one in page.all(class_="node")]


async def show(person: Visitor, **args: object) -> Element:
    return await person.look(f"/console/graph?{urlencode(args)}")


async def test_graph_neighbourhood_is_drawn_and_listed_in_tables(tmp_path: Path) -> None:
    """behaviour 235: the graph page renders."""
    async with visiting(tmp_path, settled=True) as person:
        lithos = person.lithos
        source = await lithos.create("Source", "Where it is from.")
        centre = await lithos.create(
            "Centre", "See [[Linked]].", derived_from_ids=[source], note_type="summary"
        )
        linked = await lithos.create("Linked", "See [[Far]].")
        far = await lithos.create("Far", "See [[Farther]].")
        await lithos.create("Farther", "The end.")
        against = await lithos.create("Against", "No.")
        for kind, other in (("contradicts", against), ("supports", linked)):
            await lithos.call(
                "lithos_edge_upsert", from_id=centre, to_id=other, type=kind, weight=1.0, namespace="n"
            )
        page = await show(person, note=centre)
        assert len(nodes_of(page)) == 4
        assert "4 notes within 1 step" in page.text
        assert "Far" not in {one.text for one in page.all(class_="note")}
        for kind in ("link", "derived", "typed", "contradicts"):
            (path, *_) = page.all(class_=f"e-{kind}")
            assert path.attributes["d"].startswith("M")
        told = {one.told for one in page.all("tr")}
        assert {"Centre links to Linked", "Centre derived from Source", "Centre supports Linked"} <= told
        assert "Centre contradicts Against" in told
        assert f"?note={linked}" in nodes_of(page)
        assert f"/console/notes/{centre}" in nodes_of(page)
        (start,) = page.all(class_="start")
        assert "Centre" in start.text
        assert len(nodes_of(await show(person, note=centre, depth=2))) == 5
        assert len(nodes_of(await show(person, note=centre, depth=3))) == 6
        assert len(nodes_of(await show(person, note=far, depth=1))) == 3


async def test_graph_page_shows_the_most_central_notes_by_default(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        await star(person.lithos, 12)
        await person.lithos.create("Alone")
        page = await show(person)
        assert len(nodes_of(page)) >= 13
        assert "most central notes" in page.text
        largest = max(page.all("circle"), key=lambda one: float(one.attributes["r"]))
        hub = next(one for one in page.all(class_="node") if one.text.startswith("Hub: "))
        assert largest.attributes in [one.attributes for one in page.all("circle")]
        assert "label-always" in hub.attributes["class"]
        assert "Hub" in (await show(person, q="the middle of all", depth=1)).all("main")[0].text


async def test_graph_page_gives_advice_for_empty_vaults_and_wrong_ids(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        assert "There are no notes yet." in (await show(person)).text
        assert "The search found no note to start from." in (await show(person, q="zebra")).text
        for text in (MISSING_ID, *HOSTILE):
            await person.look(f"/console/graph?{urlencode({'note': text})}", 404)
            await show(person, q=text)
        await person.lithos.create("Alone", "nothing")
        page = await show(person)
        assert len(nodes_of(page)) == 1
        assert "These notes have no relations." in page.text
        for wrong in ("0", "4", "x"):
            assert len(nodes_of(await show(person, depth=wrong, offset=wrong, by=wrong))) == 1


async def test_graph_picture_shows_nearest_notes_first_then_by_pagerank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as lithos:
        ids = await star(lithos, 30)
        server = lithos.server
        around = Neighbourhoods(
            server.get(Catalogue), server.get(Edges), server.get(Search).centrality
        ).around
        picture = await around([ids[0]], 1, most=10)
        assert len(picture.nodes) == 10
        assert picture.left_out == 21
        places = [node.place for node in picture.nodes[1:]]
        assert places == sorted(places)
        everything = await around([ids[0]], 3)
        best = sorted(everything.nodes[1:], key=lambda node: node.place)[:9]
        assert {node.entry.note.id for node in best} == {node.entry.note.id for node in picture.nodes[1:]}
        far = await around([ids[30]], 2, most=31)
        distances = [node.distance for node in far.nodes]
        assert distances == sorted(distances)
        assert distances[0] == 0
        monkeypatch.setattr(neighbourhood, "MOST_LINES", 5)
        cut = await around([ids[0]], 1)
        assert (len(cut.lines), cut.lines_left_out) == (5, len(everything.lines) - 5)


async def test_graph_of_300_notes_fits_the_page_size_limit(tmp_path: Path) -> None:
    vault = tmp_path / "knowledge"
    vault.mkdir()
    random.seed(1)
    for number in range(330):
        links = " ".join(f"[[n{random.randrange(330)}]]" for _ in range(5))
        head = f"title: {'A rather long title of a note' * 3} {number}\naliases: [n{number}]"
        text = f"---\n{head}\n---\n{links}\n"
        (vault / f"n{number}.md").write_text(text)
    (vault / "hub.md").write_text("\n".join(f"[[n{number}]]" for number in range(330)))
    async with visiting(tmp_path, settled=True) as person:
        hub = person.lithos.server.get(Catalogue).at_path("hub.md")
        assert hub is not None
        page = await show(person, note=hub.note.id)
        assert len(nodes_of(page)) == 300
        assert "Only 300 notes are shown" in page.text
        last = await show(person, note=hub.note.id, offset=200)
        assert last.all("table")
        assert nodes_of(last) == nodes_of(page)


async def test_same_graph_is_drawn_identically_and_cached(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        ids = await star(lithos, 14)
        server = lithos.server
        around = Neighbourhoods(
            server.get(Catalogue), server.get(Edges), server.get(Search).centrality
        ).around
        picture = await around([ids[0]], 1)
        drawings = Drawings(Inline())
        first = await drawings.draw(picture, "type", str)
        assert await drawings.draw(picture, "type", str) == first
        assert await Drawings(Inline()).draw(picture, "type", str) == first
        for spot in first.spots:
            assert 0 <= spot.x <= WIDTH
            assert 0 <= spot.y <= HEIGHT
            assert 1 <= spot.colour <= COLOURS
        sizes = [spot.radius for spot in first.spots]
        assert max(sizes) == sizes[0]
        for number in range(1, 15):
            await drawings.draw(await around([ids[number]], 1), "namespace", str)
        assert len(drawings._kept) <= KEPT


def test_layout_is_deterministic_and_puts_linked_nodes_close_together() -> None:
    random.seed(4)
    edges = [(number, number // 3) for number in range(1, 60)] + [(60, 61), (61, 62)]
    places = lay_out(65, edges)
    assert places == lay_out(65, edges)
    assert len(places) == 65
    assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in places)
    assert len(set(places)) == 65

    def apart(pairs: Sequence[tuple[int, int]]) -> float:
        return sum(
            ((places[a][0] - places[b][0]) ** 2 + (places[a][1] - places[b][1]) ** 2) ** 0.5 for a, b in pairs
        ) / len(pairs)

    strangers = [(random.randrange(60), random.randrange(60)) for _ in range(300)]
    assert apart(edges[:59]) < 0.6 * apart(strangers)


def test_small_graphs_get_a_layout() -> None:
    small = (
        (0, []),
        (1, []),
        (1, [(0, 0)]),
        (2, [(0, 1)]),
        (2, []),
        (7, []),
        (3, [(0, 1), (1, 0), (0, 1), (2, 2)]),
    )
    for count, edges in small:
        places = lay_out(count, edges)
        assert len(places) == len(set(places)) == count, (count, edges)
        assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in places)


async def test_edge_that_repeats_provenance_is_listed_only_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        source = await lithos.create("Source", "a")
        note = await lithos.create("Note", "b", derived_from_ids=[source])
        server = lithos.server

        class Projected:
            async def touching(self, note_ids: Any) -> list[Edge]:
                found = await server.get(Edges).touching(note_ids)
                made = Edge(
                    id="e", from_id=note, to_id=source, type="derived_from", weight=1.0, namespace="n",
                    created_at=lithos_time, updated_at=lithos_time, provenance_actor=None,
                    provenance_type="frontmatter", evidence=None, conflict_state=None,
                )  # fmt: skip
                return [*found, made]

        entry = server.get(Catalogue).get(note)
        assert entry is not None
        lithos_time = entry.note.created_at
        picture = await Neighbourhoods(
            server.get(Catalogue), Projected(), server.get(Search).centrality
        ).around([note], 1)
        assert [(line.kind, line.name) for line in picture.lines] == [("derived", "derived from")]


async def test_hostile_titles_types_and_queries_do_not_run_scripts(tmp_path: Path) -> None:
    """behaviour 236: the graph page shows hostile text as plain text."""
    async with visiting(tmp_path, settled=True) as person:
        made = [
            await person.lithos.write(f"{text} {n}", f"zebra [[Hub]] {text}")
            for n, text in enumerate(HOSTILE)
        ]
        hub = await person.lithos.create("Hub", "zebra")
        for text in HOSTILE:
            edge = {"from_id": hub, "to_id": made[0]["id"], "type": text, "weight": 1.0, "namespace": "n"}
            assert (await person.lithos.call("lithos_edge_upsert", **edge)).get("status") != "error"
        assert len(nodes_of(await show(person, note=hub))) == len(HOSTILE) + 1
        await show(person, by="namespace", q="zebra")


async def test_hub_is_collapsed_unless_the_graph_starts_there(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        hub, *_ = await star(lithos, HUB + 2)
        near = await lithos.create("Near", "See [[Hub]] and [[Few]].")
        await lithos.create("Few", "See [[Behind]].")
        await lithos.create("Behind", "The end.")
        server = lithos.server
        around = Neighbourhoods(
            server.get(Catalogue), server.get(Edges), server.get(Search).centrality
        ).around
        picture = await around([near], 2)
        assert sorted(node.entry.note.title for node in picture.nodes) == ["Behind", "Few", "Hub", "Near"]
        drawing = await Drawings(Inline()).draw(picture, "folder", str)
        labels = {spot.node.entry.note.title: spot.label for spot in drawing.spots}
        assert labels["Hub"] == f"Hub +{HUB + 2}"
        assert (labels["Near"], labels["Few"]) == ("Near", "Few")
        assert len((await around([hub], 1)).nodes) == HUB + 4
        assert {node.folded for node in (await around([hub], 1)).nodes} == {0}


async def test_long_graph_labels_are_shortened_and_folder_colours_are_stable(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        folders = ["ideas", "people", "work/deep"]
        for number, folder in enumerate(folders):
            text = " ".join(f"[[A rather long title of note {n}]]" for n in range(number + 1))
            await lithos.create(f"A rather long title of note {number}", text, path=folder)
        server = lithos.server
        found = Neighbourhoods(server.get(Catalogue), server.get(Edges), server.get(Search).centrality)
        colours: dict[str, set[int]] = {}
        for number in range(1, 4):
            drawing = await Drawings(Inline()).draw(await found.central(number), "folder", str)
            assert [spot.label for spot in drawing.spots] == ["A rather long title of note…"] * number
            assert {one.name for one in drawing.legend} <= {"ideas", "people", "work"}
            for one in drawing.legend:
                colours.setdefault(one.name, set()).add(one.number)
        assert [len(numbers) for numbers in colours.values()] == [1, 1, 1]


async def test_note_page_links_to_the_graph_around_the_note(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        await star(person.lithos, 3)
        note = await person.lithos.create("Alone", "Nothing.")
        page = await person.look(f"/console/notes/{note}")
        (way,) = [
            link for link in page.all("a") if link.text == "Graph" and "note=" in link.attributes["href"]
        ]
        assert nodes_of(await person.look(way.attributes["href"])) == [f"/console/notes/{note}"]
