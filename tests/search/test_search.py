"""The search page: tool results, explanations, comparisons, search while typing (docs/spec/console.md §2)."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from urllib.parse import urlencode

import pytest
import trio

from bench import corpus
from lithos.memory.retrieve.feedback import Learning
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.search.embedding.embedder import EmbedderUnavailable
from lithos.search.pages import ALL_MODES
from lithos.search.service.search import MODES, Search, SearchRequest
from lithos.search.settings import SearchConfig
from tests.server.console.injections import HOSTILE
from tests.server.console.pages import check, parse
from tests.server.console.visiting import Visitor, visiting
from tests.servers import serving

QUESTIONS = ("how does governance work", "what is proof of stake", "open source license", "zebra", "note")


def put_vault(data: Path, notes: int = 40) -> None:
    """Create a vault with `notes` notes."""
    corpus.main([str(data / "knowledge"), "--notes", str(notes), "--seed", "7"])


def address(**args: object) -> str:
    return f"/console/search?{urlencode(args)}"


async def rows_of(person: Visitor, query: str, mode: str) -> list[dict[str, object]]:
    answer = await person.lithos.call("lithos_search", query=query, mode=mode, limit=25)
    return list(answer["results"])


async def test_explained_score_parts_add_up_to_the_tool_scores(tmp_path: Path) -> None:
    put_vault(tmp_path)
    explained = 0
    for fusion in ("blend", "rrf"):
        async with serving(tmp_path, search=SearchConfig(fusion=fusion)) as lithos:  # type: ignore[arg-type]
            for query, mode, (limit, offset) in product(QUESTIONS, MODES, ((10, 0), (50, 0), (10, 10))):
                given = {"query": query, "mode": mode, "limit": limit, "offset": offset}
                rows = (await lithos.call("lithos_search", **given))["results"]
                ids = [row["id"] for row in rows]
                why = (await lithos.server.get(Search).explain(SearchRequest(**given), ids)).by_id
                assert set(why) == set(ids)
                scores = [why[row["id"]].score for row in rows]
                assert scores == pytest.approx([row["score"] for row in rows], abs=1e-9), (mode, query)
                assert scores == sorted(scores, reverse=True)
                explained += len(rows)
    assert explained > 500


async def test_explanation_shows_ranks_similarity_title_and_probability(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        titled = await lithos.create("Zebra stripes", "Animals of the savannah.")
        within = await lithos.create("Savannah", "# Zebra\n\nA zebra is a striped animal of the savannah.")
        await lithos.create("Cooking", "Boil the noodles for five minutes.")
        everything = [entry.note.id for entry in lithos.server.get(Catalogue)]
        before = await lithos.audit()
        request = SearchRequest(query="zebra", agent_id="ann")
        found = await lithos.server.get(Search).explain(request, everything)
        assert await lithos.audit() == before, "an explanation records nothing"
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
        assert (await lithos.server.get(Search).explain(SearchRequest(query="  "), everything)).by_id == {}
        bad = SearchRequest(query='"open', mode="fulltext")
        assert (await lithos.server.get(Search).explain(bad, everything)).by_id == {}


async def test_search_page_shows_the_tool_rows_with_explanations(tmp_path: Path) -> None:
    """behaviour 235: the search page renders within the size limit."""
    put_vault(tmp_path)
    async with visiting(tmp_path, settled=True) as person:
        (question,) = await person.lithos.listed(limit=1)
        for mode in ALL_MODES:
            rows = await rows_of(person, question, "hybrid" if mode == "retrieve" else mode)
            assert rows, mode
            page = await person.look(address(q=question, mode=mode, limit=25))
            shown = [one.text for one in page.all("h2") if one.text]
            assert shown[: len(rows)] == [row["title"] for row in rows], mode
            assert len(page.all(class_="why")) == len(page.all(class_="score")) == len(rows), mode
            await person.look(address(q=question, mode=mode, limit=50))
            if mode == "retrieve":
                assert any(link.startswith("/console/receipts/rcpt_") for link in page.links)
                assert "vector" in page.text


async def test_only_matched_words_are_marked(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        await person.lithos.create("A", "Zébras and one ZEBRA, <mark>no match</mark>, 東京の本.")
        for query, marked in (
            ({"q": "zebra"}, ["Zébras", "ZEBRA"]),
            ({"q": "東京", "mode": "fulltext"}, ["東京"]),
        ):
            page = await person.look(address(**query))
            assert [one.text for one in page.all("mark")] == marked
        # A partial page contains only the results.
        asked = {"q": '"zebra"', "mode": "fulltext"}
        whole, part = await person.page(address(**asked)), await person.page(address(**asked, partial=1))
        assert ("<html" in part, "<form" in part, part.strip() in whole) == (False, False, True)
        (found,) = parse(part).has("data-said")
        assert found.attributes["data-said"] == "1 result in mode fulltext"


async def test_query_matches_prefixes_only_while_it_is_typed(
    tmp_path: Path,
) -> None:
    """behaviour 265: "curs" is not a word of the note. The explanation comes from the same search."""
    async with visiting(tmp_path, settled=True) as person:
        await person.lithos.create("Inserter", "Puts text where the cursor stands.")
        for mode in ("hybrid", "fulltext"):
            asked = {"q": "curs", "mode": mode}
            typed = parse(await person.page(address(**asked, partial=1)))
            (found,) = typed.has("data-said")
            assert found.attributes["data-said"] == f"1 result in mode {mode}"
            assert len(typed.all(class_="why")) == 1
        sent = await person.look(address(q="curs", mode="fulltext"))
        assert "Inserter" not in [one.text for one in sent.all("h2")]


async def test_search_page_filters_equal_those_of_the_tool(tmp_path: Path) -> None:
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
            page = await person.look(address(q="zebra", **given))
            assert {one.text for one in page.all("h2")} == found, given
            assert len(page.all(class_="score")) == len(found)
        # The person searches under the name of the session.
        await person.submit("/console/identity", agent="Ann Person")
        note = await lithos.create("Mine", "zebra", agent="Ann Person", access_scope="agent_private")
        assert note in await person.page(address(q="zebra", mode="retrieve"))
        await person.page(address(q="zebra"))
        assert "Ann Person" in {agent for agent, _, _ in await lithos.audit()}


async def test_search_while_typing_never_runs_retrieve(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        await person.lithos.create("Zebra", "stripes")
        learning = person.lithos.server.get(Learning)
        for query in ("z", "ze", "zebra"):
            for modes in ({"mode": "retrieve"}, {"mode": "hybrid", "against": "retrieve"}):
                assert "Press Enter" in await person.page(address(q=query, partial=1, **modes))
        assert await learning.receipt_count() == 0
        page = await person.page(address(q="zebra", mode="retrieve"))
        assert await learning.receipt_count() == 1
        assert "rcpt_" in page


async def test_comparison_of_two_modes_marks_moved_rows(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        await person.lithos.create("Striped horses", "Wild horses of the savannah with black lines.")
        await person.lithos.create("Zebra", "zebra zebra zebra")
        await person.lithos.create("Noodles", "zebra noodles, cooked for a while")
        page = await person.look(address(q="zebra", mode="fulltext", against="semantic", threshold="0.05"))
        (versus,) = page.all(class_="versus")
        first = [row["title"] for row in await rows_of(person, "zebra", "fulltext")]
        second_rows = await person.lithos.call(
            "lithos_search", query="zebra", mode="semantic", threshold=0.05
        )
        second = [row["title"] for row in second_rows["results"]]
        titles = [one.text for one in page.all("h3")]
        assert titles == first + second
        moves = [one.text for one in page.all(class_="move")]
        expected = []
        for place, title in enumerate(second):
            by = first.index(title) - place if title in first else None
            expected.append("new" if by is None else "=" if not by else f"{'↑' if by > 0 else '↓'}{abs(by)}")
        assert moves == expected
        assert ("Gone" in page.text) == bool(set(first) - set(second))
        assert versus.text


async def test_refusals_are_shown_and_the_form_keeps_its_input(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        await person.lithos.create("Zebra", "stripes")
        page = await person.page(address(q='"open <b>', mode="fulltext"))
        assert "does not parse" in page
        assert 'value="&#34;open &lt;b&gt;"' in page
        answer = await person.get(address(q="zebra", threshold="7"))
        assert answer.status_code == 400
        assert "threshold must be between 0 and 1" in answer.text
        nothing = await person.page(address(q="qwertyuiop", mode="fulltext"))
        assert "No results." in nothing
        assert "Mode hybrid does not support a filter by the task" in await person.page(
            address(q="x", task_id="t")
        )


async def test_degraded_and_empty_pages_explain_the_next_step(tmp_path: Path) -> None:
    """behaviour 235: the empty and the degraded page render."""

    def no_model(name: str) -> None:
        raise EmbedderUnavailable(name, "there is no such model")

    async with visiting(tmp_path, settled=False, load=no_model) as person:
        assert "No agent has retrieved anything yet." in (await person.look("/console/search")).text
        note = await person.lithos.create("Zebra", "stripes")
        hybrid = await person.page(address(q="zebra"))
        assert "Answered without semantic" in hybrid
        assert "Zebra" in hybrid
        answer = await person.get(address(q="zebra", mode="semantic"))
        assert answer.status_code == 503
        assert "there is no such model" in answer.text
        request = SearchRequest(query="zebra", mode="semantic")
        assert (await person.lithos.server.get(Search).explain(request, [note])).by_id == {}


async def test_recent_queries_are_offered_unless_they_found_private_notes(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        await person.lithos.create("Open", "zebra facts")
        await person.lithos.create("Diary", "secret lion thoughts", agent="ann", access_scope="agent_private")
        for query in ("zebra facts", "zebra facts", "lion thoughts"):
            await person.lithos.call("lithos_retrieve", query=query, agent_id="ann", limit=1)
        page = await person.page("/console/search")
        assert page.count(">zebra facts<") == 1
        assert "lion thoughts" not in page


@pytest.mark.slow
async def test_hostile_notes_and_queries_run_no_script(tmp_path: Path) -> None:
    """behaviour 236: the test covers the search page."""
    async with visiting(tmp_path, settled=True) as person:
        for number, text in enumerate(HOSTILE):
            title = f"{text} {number}"
            await person.lithos.write(title, f"zebra {text} zebra {text}", agent=text, tags=[f"t{number}"])
        modes = ("hybrid", "fulltext", "graph", "retrieve")
        for at, mode in enumerate(modes):
            page = await person.look(address(q="zebra", mode=mode, limit=25))
            assert {one.text.lower() for one in page.all("mark")} == {"zebra"}
            assert len(page.all(class_="hit-head")) == (5 if mode == "graph" else len(HOSTILE))
            for text in HOSTILE[at :: len(modes)]:
                for args in ({"q": text}, {"q": "zebra", "author": text}, {"q": text, "tags": text}):
                    answer = await person.get(address(mode=mode, **args))
                    assert answer.status_code in (200, 400)
                    check(answer.text, args)
        await person.look("/console/search")


async def test_citations_are_shown_as_part_of_the_score(tmp_path: Path) -> None:
    async with visiting(tmp_path, settled=True) as person:
        lithos = person.lithos
        for number in range(3):
            await lithos.create(f"Zebra {number}", f"zebra stripes {number}")
        cited = await lithos.create("Cited", "a zebra has stripes")
        task = (await lithos.call("lithos_task_create", title="t", agent="ann"))["task_id"]
        asked = {"query": "why has a zebra stripes", "agent_id": "ann", "task_id": task}
        before = await person.look(address(q=asked["query"], mode="retrieve"))
        assert not before.all(class_="p-memory")[1:]  # Only the legend has this class.
        await lithos.call("lithos_retrieve", **asked)
        await lithos.call("lithos_task_complete", task_id=task, agent="ann", cited_nodes=[cited])
        while not (await lithos.call("lithos_node_stats", node_id=cited)).get("cited_for"):
            await trio.sleep(0.02)  # Learning runs after the completion.
        page = await person.look(address(q=asked["query"], mode="retrieve"))
        assert page.all("h2")[0].text == "Cited"
        assert "cited" in page.text
        assert "cited for: why has a zebra stripes" in page.text
        assert len(page.all("rect", "p-memory")) == 1
