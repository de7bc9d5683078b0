"""The search page: what agents get, why, side by side, as one types (docs/spec/console.md §2)."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import urlencode

import pytest
import trio

from bench import corpus
from lithos.config.sections import SearchConfig
from lithos.front.console.pages.search import ALL_MODES
from lithos.services.search.search import MODES, SearchRequest
from lithos.stores.indexes.embedder import EmbedderUnavailable
from tests.front.console.parsed_pages import HOSTILE, check_harmless, check_labelled, parse
from tests.front.console.visiting import Visitor, visiting
from tests.servers import serving

LARGEST_PAGE = 200_000
QUESTIONS = ("how does governance work", "what is proof of stake", "open source license", "zebra", "note")
_VAULTS = (Path(__file__).parents[4] / "shared" / "vault", Path("/work/shared/vault"))


def put_vault(data: Path) -> None:
    """The shared vault, or a corpus where it is not there."""
    shared = next((path for path in _VAULTS if path.is_dir()), None)
    if shared is not None:
        shutil.copytree(shared, data / "knowledge")
    else:
        corpus.main([str(data / "knowledge"), "--notes", "150", "--seed", "7"])


def address(**args: object) -> str:
    return f"/console/search?{urlencode(args)}"


async def rows_of(person: Visitor, query: str, mode: str) -> list[dict[str, object]]:
    answer = await person.lithos.call("lithos_search", query=query, mode=mode, limit=25)
    return list(answer["results"])


@pytest.mark.parametrize("fusion", ["blend", "rrf"])
async def test_the_parts_of_an_explanation_add_up_to_the_tools_scores(tmp_path: Path, fusion: str) -> None:
    put_vault(tmp_path)
    explained = 0
    async with serving(tmp_path, search=SearchConfig(fusion=fusion)) as lithos:  # type: ignore[arg-type]
        for query in QUESTIONS:
            for mode in MODES:
                for limit, offset in ((10, 0), (50, 0), (10, 10)):
                    request = SearchRequest(query=query, mode=mode, limit=limit, offset=offset)
                    given = {"query": query, "mode": mode, "limit": limit, "offset": offset}
                    rows = (await lithos.call("lithos_search", **given))["results"]
                    ids = [row["id"] for row in rows]
                    why = (await lithos.server.search.explain(request, ids)).by_id
                    assert set(why) == set(ids)
                    scores = [why[row["id"]].score for row in rows]
                    assert scores == pytest.approx([row["score"] for row in rows], abs=1e-9), (mode, query)
                    assert scores == sorted(scores, reverse=True)
                    explained += len(rows)
    assert explained > 500


async def test_an_explanation_names_ranks_similarity_title_and_probability(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        titled = await lithos.create("Zebra stripes", "Animals of the savannah.")
        within = await lithos.create("Savannah", "# Zebra\n\nA zebra is a striped animal of the savannah.")
        await lithos.create("Cooking", "Boil the noodles for five minutes.")
        everything = [entry.note.id for entry in lithos.server.catalogue]
        found = await lithos.server.search.explain(SearchRequest(query="zebra"), everything)
        rows = (await lithos.call("lithos_search", query="zebra"))["results"]
        by_words = {note_id: why.words for note_id, why in found.by_id.items() if why.words is not None}
        assert {part.rank for part in by_words.values()} == {1, 2}
        assert by_words[titled].title > 0.05
        assert by_words[within].title == 0
        assert by_words[within].headings > 0
        meaning = found.by_id[within].meaning
        assert meaning is not None
        assert 0 < meaning.similarity <= 1
        first = found.by_id[rows[0]["id"]]
        assert first.probability is not None
        assert (await lithos.server.search.explain(SearchRequest(query="  "), everything)).by_id == {}
        bad = SearchRequest(query='"open', mode="fulltext")
        assert (await lithos.server.search.explain(bad, everything)).by_id == {}


async def test_an_explanation_records_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Zebra", "stripes")
        before = await lithos.audit()
        await lithos.server.search.explain(SearchRequest(query="zebra", agent_id="ann"), [note])
        assert await lithos.audit() == before


@pytest.mark.parametrize("mode", ALL_MODES)
async def test_every_mode_shows_the_tools_rows_with_why(tmp_path: Path, mode: str) -> None:
    """behaviour 235: renders on the shared vault, within its size."""
    put_vault(tmp_path)
    async with visiting(tmp_path, settled=True) as person:
        rows = await rows_of(person, QUESTIONS[0], "hybrid" if mode == "retrieve" else mode)
        assert rows
        html = await person.page(address(q=QUESTIONS[0], mode=mode, limit=25))
        page = check_harmless(html)
        check_labelled(page)
        shown = [one.text for one in page.elements if one.name == "h2" and one.text]
        assert shown[: len(rows)] == [str(row["title"]) for row in rows]
        assert len(page.with_class("why")) == len(rows)
        assert len(page.with_class("score")) == len(rows)
        largest = await person.page(address(q=QUESTIONS[0], mode=mode, limit=50))
        assert len(largest.encode()) <= LARGEST_PAGE
        if mode == "retrieve":
            assert any(link.startswith("/console/receipts/rcpt_") for link in page.links)
            assert "vector" in html


async def test_matched_words_are_marked_and_nothing_else(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        await person.lithos.create("A", "Zébras and one ZEBRA, <mark>no match</mark>, 東京の本.")
        page = check_harmless(await person.page(address(q="zebra")))
        assert [one.text for one in page.named("mark")] == ["Zébras", "ZEBRA"]
        page = check_harmless(await person.page(address(q="東京", mode="fulltext")))
        assert [one.text for one in page.named("mark")] == ["東京"]


async def test_filters_are_those_of_the_tool(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        lithos = person.lithos
        await lithos.create("One", "zebra", tags=["a", "b"], path="left", agent="ann")
        await lithos.create("Two", "zebra", tags=["a"], path="right", agent="ben")
        for given, found in (
            ({"tags": "a, b"}, {"One"}),
            ({"tags": "a"}, {"One", "Two"}),
            ({"path_prefix": "right/"}, {"Two"}),
            ({"author": "ann"}, {"One"}),
            ({"tags": "a", "mode": "retrieve"}, {"One", "Two"}),
            ({"namespace": "right", "mode": "retrieve"}, {"Two"}),
        ):
            page = parse(await person.page(address(q="zebra", **given)))
            assert {one.text for one in page.named("h2")} == found, given
            assert len(page.with_class("score")) == len(found)


async def test_a_fragment_is_the_results_alone(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        await person.lithos.create("Zebra", "stripes")
        whole = await person.page(address(q="zebra"))
        part = await person.page(address(q="zebra", partial=1))
        assert "<html" not in part
        assert "<form" not in part
        assert part.strip() in whole
        (found,) = [one for one in parse(part).elements if "data-said" in one.attributes]
        assert found.attributes["data-said"] == "1 result in mode hybrid"


async def test_a_keystroke_never_retrieves(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        await person.lithos.create("Zebra", "stripes")
        learning = person.lithos.server.learning
        for query in ("z", "ze", "zebra"):
            for modes in ({"mode": "retrieve"}, {"mode": "hybrid", "against": "retrieve"}):
                assert "Press Enter" in await person.page(address(q=query, partial=1, **modes))
        assert await learning.receipt_count() == 0
        page = await person.page(address(q="zebra", mode="retrieve"))
        assert await learning.receipt_count() == 1
        assert "rcpt_" in page


async def test_two_modes_stand_side_by_side_with_what_moved(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        await person.lithos.create("Striped horses", "Wild horses of the savannah with black lines.")
        await person.lithos.create("Zebra", "zebra zebra zebra")
        await person.lithos.create("Noodles", "zebra noodles, cooked for a while")
        html = await person.page(address(q="zebra", mode="fulltext", against="semantic", threshold="0.05"))
        page = check_harmless(html)
        check_labelled(page)
        (versus,) = page.with_class("versus")
        first = [row["title"] for row in await rows_of(person, "zebra", "fulltext")]
        second_rows = await person.lithos.call(
            "lithos_search", query="zebra", mode="semantic", threshold=0.05
        )
        second = [row["title"] for row in second_rows["results"]]
        titles = [one.text for one in page.named("h3")]
        assert titles == first + second
        moves = [one.text for one in page.with_class("move")]
        expected = []
        for place, title in enumerate(second):
            by = first.index(title) - place if title in first else None
            expected.append("new" if by is None else "=" if not by else f"{'↑' if by > 0 else '↓'}{abs(by)}")
        assert moves == expected
        assert ("Gone" in html) == bool(set(first) - set(second))
        assert versus.text


async def test_the_person_searches_under_the_name_of_the_session(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        await person.submit("/console/identity", agent="Ann Person")
        note = await person.lithos.create("Mine", "zebra", agent="Ann Person", access_scope="agent_private")
        page = await person.page(address(q="zebra", mode="retrieve"))
        assert note in page
        await person.page(address(q="zebra"))
        assert "Ann Person" in {agent for agent, _, _ in await person.lithos.audit()}


async def test_refusals_stand_on_the_page_and_the_form_keeps_what_was_typed(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        await person.lithos.create("Zebra", "stripes")
        page = await person.page(address(q='"open <b>', mode="fulltext"))
        assert "does not parse" in page
        assert 'value="&#34;open &lt;b&gt;"' in page
        answer = await person.get(address(q="zebra", threshold="7"))
        assert answer.status_code == 400
        assert "threshold must be between 0 and 1" in answer.text
        nothing = await person.page(address(q="qwertyuiop", mode="fulltext"))
        assert "Nothing is found." in nothing
        assert "Mode hybrid knows no filter by the task" in await person.page(address(q="x", task_id="t"))


async def test_degraded_and_empty_say_what_to_do(tmp_path: Path) -> None:
    """behaviour 235: empty and degraded."""

    def no_model(name: str) -> None:
        raise EmbedderUnavailable(name, "there is no such model")

    async with visiting(tmp_path, settled=False, load=no_model) as person:
        page = check_harmless(await person.page("/console/search"))
        check_labelled(page)
        assert "No agent has retrieved anything yet." in page.named("main")[0].text
        note = await person.lithos.create("Zebra", "stripes")
        hybrid = await person.page(address(q="zebra"))
        assert "Answered without semantic" in hybrid
        assert "Zebra" in hybrid
        answer = await person.get(address(q="zebra", mode="semantic"))
        assert answer.status_code == 503
        assert "there is no such model" in answer.text
        request = SearchRequest(query="zebra", mode="semantic")
        assert (await person.lithos.server.search.explain(request, [note])).by_id == {}


async def test_questions_asked_lately_are_offered_but_private_ones_are_not(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        await person.lithos.create("Open", "zebra facts")
        await person.lithos.create("Diary", "secret lion thoughts", agent="ann", access_scope="agent_private")
        for query in ("zebra facts", "zebra facts", "lion thoughts"):
            await person.lithos.call("lithos_retrieve", query=query, agent_id="ann", limit=1)
        page = await person.page("/console/search")
        assert page.count(">zebra facts<") == 1
        assert "lion thoughts" not in page


@pytest.mark.parametrize("mode", ["hybrid", "fulltext", "graph", "retrieve"])
async def test_hostile_notes_and_queries_run_nothing(tmp_path: Path, mode: str) -> None:
    """behaviour 236: on the search page."""
    async with visiting(tmp_path, settled=True) as person:
        for number, text in enumerate(HOSTILE):
            title = f"{text[:300]} {number}"
            agent = text[:90].replace("\u202e", "").strip()
            await person.lithos.write(title, f"zebra {text} zebra {text}", agent=agent, tags=[f"t{number}"])
        html = await person.page(address(q="zebra", mode=mode, limit=25))
        page = check_harmless(html)
        assert {one.text.lower() for one in page.named("mark")} == {"zebra"}
        assert len(page.with_class("hit-head")) == (5 if mode == "graph" else len(HOSTILE))
        for text in HOSTILE:
            for args in (
                {"q": text[:1900]},
                {"q": "zebra", "author": text[:150]},
                {"q": text[:300], "tags": text},
            ):
                answer = await person.get(address(mode=mode, **args))
                assert answer.status_code in (200, 400)
                check_harmless(answer.text)
        check_harmless(await person.page("/console/search"))


async def test_what_a_note_was_cited_for_is_a_part_of_the_score(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        lithos = person.lithos
        for number in range(3):
            await lithos.create(f"Zebra {number}", f"zebra stripes {number}")
        cited = await lithos.create("Cited", "a zebra has stripes")
        task = (await lithos.call("lithos_task_create", title="t", agent="ann"))["task_id"]
        asked = {"query": "why has a zebra stripes", "agent_id": "ann", "task_id": task}
        before = await person.page(address(q=asked["query"], mode="retrieve"))
        assert not parse(before).with_class("p-memory")[1:]  # but in the legend
        await lithos.call("lithos_retrieve", **asked)
        await lithos.call("lithos_task_complete", task_id=task, agent="ann", cited_nodes=[cited])
        with trio.fail_after(5):  # what was learned follows the completion
            while not (await lithos.call("lithos_node_stats", node_id=cited)).get("cited_for"):
                await trio.sleep(0.02)
        html = await person.page(address(q=asked["query"], mode="retrieve"))
        page = check_harmless(html)
        assert page.named("h2")[0].text == "Cited"
        assert "cited before for a question much like this one" in html
        assert "cited for: why has a zebra stripes" in html
        bars = [one for one in page.named("rect") if one.attributes["class"] == "p-memory"]
        assert len(bars) == 1
