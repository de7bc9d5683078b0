"""The note list by folder, tag, name and state (docs/spec/console.md §2)."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
import trio

from lithos.kernel.actors.start_progress import Opening
from lithos.notes.console.notes import MOST_PROJECTS
from tests.server.console.injections import PAYLOADS
from tests.server.console.pages import Element
from tests.server.console.visiting import visiting


def listed(page: Element) -> list[str]:
    return [one.text for line in page.all("div", "line") for one in line.all("a", "note")[:1]]


async def test_folders_tags_and_filters_reduce_the_note_list(tmp_path: Path) -> None:
    """behaviour 235: the note list renders, also for an empty vault."""
    async with visiting(tmp_path) as person:
        for address in ("", "?q=x", "?view=deleted"):
            await person.look(f"/console/notes{address}")
        assert "There are no notes yet." in (await person.look("/console/notes")).text
        write = person.lithos.create
        await write("Alpha", path="ops/db/", tags=["db", "deploy"], agent="ann")
        await write("Beta", path="ops/", tags=["db"], agent="bob", confidence=0.4)
        gamma = await write(
            "Gamma", path="lab/", tags=["lab"], agent="ann", expires_at="2020-01-01T00:00:00+00:00"
        )
        page = await person.look("/console/notes?sort=title")
        assert listed(page) == ["Alpha", "Beta", "Gamma"]
        for expected in ("lab 1", "ops / 2", "db 2", "3 notes"):
            assert expected in page.told, expected
        below = await person.look("/console/notes?path_prefix=ops/&sort=title")
        assert listed(below) == ["Alpha", "Beta"]
        assert re.search(r"\bdb\b\s+1\b", below.told), "the folder in the folder"
        found = {
            "path_prefix=ops/db/": ["Alpha"],
            "tags=db,deploy": ["Alpha"],
            "author=ann&sort=title": ["Alpha", "Gamma"],
            "namespace=lab": ["Gamma"],
            "status=expired": ["Gamma"],
            "status=quarantined": [],
            "note_type=concept": [],
            "sort=confidence&limit=1&path_prefix=ops/": ["Beta", "Alpha"],
            "q=ALPH": ["Alpha"],
            "sort=nothing&status=nothing&offset=x": ["Gamma", "Beta", "Alpha"],
        }
        assert {query: listed(await person.look(f"/console/notes?{query}")) for query in found} == found
        await person.lithos.create("Delta", path="lab/")
        assert "lab 2" in (await person.look("/console/notes")).told
        await person.lithos.call("lithos_delete", id=gamma, agent="ann")
        assert "lab 1" in (await person.look("/console/notes")).told


async def test_note_list_shows_a_warning_before_the_first_scan_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with visiting(tmp_path) as person:
        await person.lithos.write("Alpha")
        warning = "notes are shown as they were when the server stopped"
        assert warning not in (await person.look("/console/notes")).told
        monkeypatch.setattr(person.lithos.server.get(Opening), "known", trio.Event())
        page = await person.look("/console/notes")
        assert warning in page.told
        assert listed(page) == ["Alpha"]


async def test_link_to_a_missing_note_suggests_similar_names(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        await person.lithos.write("Leader election")
        await person.lithos.write("Sourdough")
        told = (await person.look("/console/notes?q=Leader+elektion")).told
        assert "No note has the name Leader elektion yet." in told
        assert "Similar names Leader election" in told
        assert "Sourdough" not in told
        assert "No note has the name" not in (await person.look("/console/notes?q=leader+election")).told
        keys = ("q", "path_prefix", "tags", "author", "namespace", "status", "sort", "view")
        for at, key in enumerate(keys):  # Every filter value is shown as plain text.
            for payload in (
                *PAYLOADS[at :: len(keys)],
                "\udcff".encode("utf-8", "replace").decode(),
                "x" * 5_000,
            ):
                await person.look(f"/console/notes?{urlencode({key: payload})}")


@pytest.mark.slow
async def test_paged_note_list_shows_every_note_once(tmp_path: Path) -> None:
    """Long titles reduce the number of notes per page."""
    async with visiting(tmp_path) as person:
        for number in range(130):
            await person.lithos.create(
                f"{number:03} " + "&\u4e2d" * 400, agent="&" * 190, tags=["&" * 190, "\u4e2d" * 190]
            )
        seen, query = list[str](), "?sort=title"
        while query:
            page = await person.look(f"/console/notes{query}")
            seen += listed(page)
            query = next((one.attributes["href"] for one in page.all("a", rel="next")), "")
        assert [title[:3] for title in seen] == [f"{number:03}" for number in range(130)]


async def test_note_list_neutralises_payloads_in_note_fields(tmp_path: Path) -> None:
    """behaviour 236: payloads in titles, tags, authors and file names have no effect in lists."""
    async with visiting(tmp_path) as person:
        call = person.lithos.call
        for number, payload in enumerate(PAYLOADS):
            line = " ".join(payload.replace("\x00", " ").split())[:150]
            name = re.sub(r"[/\x00-\x1f]", "_", line)[:60]
            given = {"title": f"{line} {number}", "content": "x", "agent": line, "tags": [line]}
            answer = await call("lithos_write", path=f"{name}.md", **given)
            if "id" not in answer:
                await call("lithos_write", **given)
        for query in ("", "?offset=100", "?sort=title", "?tags=%3Cscript%3Epwned()%3C/script%3E"):
            await person.look(f"/console/notes{query}")


async def test_projects_reduce_the_note_list(tmp_path: Path) -> None:
    """A vault without projects shows no filter for them."""
    async with visiting(tmp_path) as person:
        await person.lithos.create("Common")
        assert not (await person.look("/console/notes")).all("select", name="project")
        cart = await person.lithos.create("Cart", metadata={"project": "github.com/acme/shop"})
        await person.lithos.create("Till", metadata={"project": ["git@GitHub.com:Acme/Shop.git", "blog"]})
        page = await person.look("/console/notes?sort=title&project=github.com/acme/shop")
        assert listed(page) == ["Cart", "Till"]
        (choice,) = page.all("select", name="project")
        assert choice.text.endswith("blog (1)github.com/acme/shop (2)no project")
        (chosen,) = [each for each in choice.all("option") if "selected" in each.attributes]
        assert chosen.attributes["value"] == "github.com/acme/shop"
        found = {
            "project=shop": ["Cart", "Till"],
            "project=blog": ["Till"],
            "project=other": [],
            "project=/": ["Common"],
            "project=..": ["Cart", "Common", "Till"],
            "project=shop&q=car": ["Cart"],
        }
        for query, titles in found.items():
            assert listed(await person.look(f"/console/notes?sort=title&{query}")) == titles, query
        note = await person.look(f"/console/notes/{cart}")
        (link,) = [each for each in note.all("a") if each.text == "github.com/acme/shop"]
        assert listed(await person.look(link.attributes["href"])) == ["Till", "Cart"]


async def test_project_of_any_text_is_shown_as_text(tmp_path: Path) -> None:
    async with visiting(tmp_path) as person:
        for number, payload in enumerate(each.replace("\0", "") for each in PAYLOADS):
            note = await person.lithos.create(f"Note {number}", metadata={"project": payload})
            await person.look(f"/console/notes/{note}")
            await person.look(f"/console/notes?{urlencode({'project': payload})}")


async def test_list_of_many_long_projects_is_a_small_page(tmp_path: Path) -> None:
    """The parser of the pages checks their size."""
    async with visiting(tmp_path) as person:
        for number in range(4):
            names = [f"{'&' * 290} {number} {each}" for each in range(20)]
            await person.lithos.create(f"Note {number}", metadata={"project": names})
        (choice,) = (await person.look("/console/notes")).all("select", name="project")
        assert len(choice.all("option")) == MOST_PROJECTS + 2
