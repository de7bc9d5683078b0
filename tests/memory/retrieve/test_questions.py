"""Ranking by evidence and remembered questions, on a complete server."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest
import trio

from lithos.kernel.values.errors import StorageFailed
from lithos.memory.enrich.questions import QuestionUpkeep
from lithos.memory.model.questions import LoadQuestions
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.settings import LcmaConfig
from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.service.search import Search
from lithos.search.settings import SearchConfig
from tests.memory.enrich.test_enrichment import worker
from tests.memory.tools.task_calls import create
from tests.servers import Clock, Lithos, put_note, serving

DATA = Path(__file__).parents[2] / "data"
#: With this threshold, semantic search finds only identical texts.
LITERAL = SearchConfig(semantic_threshold=0.999)
QUESTION = "how do I upgrade the cluster without any downtime"
REWORDED = "upgrading our cluster with no downtime"
UNRELATED = "which bread recipe needs no oven"
NOTES = {
    "Rolling restart": "Drain one pod of the cluster without haste, restart it, wait until it is ready.",
    "Cluster sizes": "How many nodes the cluster has, and how to add one without any trouble.",
    "Sourdough": "Knead the dough, let it rise, bake the bread without opening the oven.",
    "Flat bread": "A recipe for bread that needs only a pan, no oven.",
}


def rows(name: str) -> list[list[str]]:
    with (DATA / name).open(newline="") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def vault(data: Path, most: int) -> list[str]:
    """Write the notes of the test vault into the data folder. Return the test queries."""
    for number, row in enumerate(rows("vault_notes.tsv")[1 : most + 1]):
        head = "---\ntags: [even]\n---\n" if number % 2 == 0 else ""
        title = f"{number} {row[1]}"[:80]
        put_note(data, f"f{number % 3}/{number}.md", f"{head}# {title}\n\n{' '.join(row[1:])}\n")
    return [row[1] for row in rows("vault_queries.tsv")[1:]]


async def cook(lithos: Lithos) -> dict[str, str]:
    """Create the test notes and return their ids by title."""
    return {title: await lithos.create(title, content) for title, content in NOTES.items()}


async def retrieve(lithos: Lithos, query: str, **more: Any) -> list[dict[str, Any]]:
    answer = await lithos.call("lithos_retrieve", query=query, **more)
    assert not answer["degraded"], answer
    found: list[dict[str, Any]] = answer["results"]
    return found


async def order(lithos: Lithos, query: str, **more: Any) -> list[str]:
    return [row["title"] for row in await retrieve(lithos, query, **more)]


async def teach(
    lithos: Lithos, query: str, cited: Sequence[str] = (), misleading: Sequence[str] = (), **more: Any
) -> None:
    """Retrieve notes for a task and complete the task with feedback.

    Assert that all rated notes were shown.
    """
    asked = {"agent_id": "ann"} | more
    task = asked.pop("task_id", None) or await create(lithos)
    found = await retrieve(lithos, query, task_id=task, **asked)
    assert {row["id"] for row in found} >= {*cited, *misleading}, found
    done = await lithos.call(
        "lithos_task_complete",
        task_id=task,
        agent=asked["agent_id"],
        cited_nodes=list(cited),
        misleading_nodes=list(misleading),
    )
    assert done["success"], done


def told(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return id, score and reasons of a row. The retrieval count is left out."""
    return row["id"], row["score"], row["reasons"]


async def cited_for(lithos: Lithos, note: str) -> list[dict[str, Any]]:
    answer = await lithos.call("lithos_node_stats", node_id=note)
    return answer.get("cited_for", [])


# -- notes found another way ----------------------------------------------------------------------


async def test_cited_note_that_was_not_retrieved_answers_the_question_later(tmp_path: Path) -> None:
    """behaviour 267: the statistics of the cited note do not change."""
    async with serving(tmp_path, search=LITERAL) as lithos:
        notes = await cook(lithos)
        answer, secret = (
            notes["Sourdough"],
            await lithos.create("Secret", access_scope="agent_private", agent="eve"),
        )
        task = await create(lithos)
        shown = await retrieve(lithos, QUESTION, task_id=task, agent_id="ann", limit=1)
        assert answer not in [row["id"] for row in shown]
        assert answer not in [row["id"] for row in await retrieve(lithos, REWORDED, limit=3)]
        cited = [answer, secret, "no-such-note"]
        await lithos.call("lithos_task_complete", task_id=task, agent="ann", cited_nodes=cited)
        (entry,) = await cited_for(lithos, answer)
        assert (entry["question"], entry["for"], entry["against"]) == (QUESTION, 1.0, 0.0)
        assert await cited_for(lithos, secret) == []
        stats = await lithos.call("lithos_node_stats", node_id=answer)
        assert (stats["cited_count"], stats["salience"]) == (0, 0.5)
        reasons = {row["id"]: row["reasons"] for row in await retrieve(lithos, REWORDED)}
        assert reasons[answer][0] == f"cited for: {QUESTION}"


# -- ranking -------------------------------------------------------------------------------------


async def test_empty_memory_does_not_change_the_hybrid_search_order(tmp_path: Path) -> None:
    """behaviour 266"""
    queries = vault(tmp_path, 120)
    async with serving(tmp_path) as lithos:
        filters: list[dict[str, Any]] = [
            {},
            {"limit": 50},
            {"limit": 3, "tags": ["even"]},
            {"path_prefix": "f1/"},
        ]
        shared = ("id", "score", "snippet")
        compared = 0
        for number, query in enumerate(queries[:40]):
            more = filters[number % len(filters)]
            answer = await lithos.call("lithos_search", query=query, mode="hybrid", **more)
            found = await retrieve(lithos, query, **more)
            same = [{key: row[key] for key in shared} for row in answer["results"]]
            assert [{key: row[key] for key in shared} for row in found[: len(same)]] == same
            assert len(found) == len(same) or len(same) < more.get("limit", 10)
            assert all(row["score"] == 0 for row in found[len(same) :])
            compared += len(same)
        assert compared > 160


async def test_hidden_notes_are_replaced_by_visible_notes(tmp_path: Path) -> None:
    """behaviour 266"""
    for number in range(300):
        secret = "author: eve\naccess_scope: agent_private\n" if number % 10 else ""
        text = "zebra " * (1 + number % 7)
        put_note(tmp_path, f"{number}.md", f"---\ntitle: Zebra {number}\n{secret}---\n{text}\n")
    async with serving(tmp_path) as lithos:
        assert len(await order(lithos, "zebra", agent_id="eve", limit=50)) == 50
        for limit in (10, 50):
            numbers = [int(title.split()[1]) for title in await order(lithos, "zebra", limit=limit)]
            assert len(numbers) == min(limit, 30)
            assert not any(number % 10 for number in numbers)


@pytest.mark.parametrize("times", [40, pytest.param(1_000, marks=pytest.mark.slow)])
async def test_retrieval_without_feedback_does_not_change_the_order(tmp_path: Path, times: int) -> None:
    """behaviour 266"""
    queries = vault(tmp_path, 40)[:10]
    async with serving(tmp_path) as lithos:
        before = [await order(lithos, query) for query in queries]
        task = await create(lithos)
        for number in range(times):
            more = {"task_id": task, "agent_id": "ann"} if number % 2 else {}
            await retrieve(lithos, queries[number % 3], limit=1 + number % 10, **more)
        assert [await order(lithos, query) for query in queries] == before


async def test_cited_note_rises_only_for_similar_questions(tmp_path: Path) -> None:
    """behaviour 267"""
    async with serving(tmp_path) as lithos:
        ids = await cook(lithos)
        right = ids["Rolling restart"]
        for query in (QUESTION, REWORDED):
            assert (await order(lithos, query))[0] == "Cluster sizes"
        alone = (await retrieve(lithos, QUESTION))[1]["score"]
        unrelated = await retrieve(lithos, UNRELATED)
        # The finding does not mention clusters. Agent `ann` gets the note only through the task.
        task = await create(lithos)
        await lithos.call(
            "lithos_finding_post", task_id=task, agent="ann", summary="this helps", knowledge_id=right
        )
        await teach(lithos, QUESTION, [right], task_id=task)
        again = await retrieve(lithos, QUESTION)
        assert again[1]["title"] == "Rolling restart"
        assert again[1]["reasons"][0] == f"cited for: {QUESTION}"
        assert again[1]["score"] - alone == pytest.approx(0.8 * 0.4, abs=0.01)
        await teach(lithos, REWORDED, [right])
        for query in (REWORDED, "no downtime while upgrading the cluster"):
            found = await retrieve(lithos, query)
            assert found[0]["title"] == "Rolling restart", query
            assert found[0]["reasons"][0].startswith("cited for: ")
        after = await retrieve(lithos, UNRELATED)
        assert [told(row) for row in after] == [told(row) for row in unrelated]
        for _ in range(2):
            await teach(lithos, QUESTION, misleading=[right])
        assert (await order(lithos, REWORDED))[0] == "Cluster sizes"


async def test_cited_note_is_found_even_if_no_scout_finds_it(tmp_path: Path) -> None:
    async with serving(tmp_path, search=LITERAL) as lithos:
        note = await lithos.create("Runbook", "drain, restart", namespace="ops")
        other = await lithos.create("Passed over", "wait", namespace="ops")
        task = await create(lithos)
        for one in (note, other):
            await lithos.call("lithos_finding_post", task_id=task, agent="ann", summary="s", knowledge_id=one)
        await teach(lithos, QUESTION, [note], task_id=task)
        (row,) = await retrieve(lithos, QUESTION)
        assert (row["id"], row["scouts"], row["reasons"]) == (note, [], [f"cited for: {QUESTION}"])
        assert [each["id"] for each in await retrieve(lithos, QUESTION, namespace_filter=["ops"])] == [note]
        # The namespace filter also applies to cited notes.
        assert await retrieve(lithos, QUESTION, namespace_filter=["elsewhere"]) == []
        assert await retrieve(lithos, QUESTION, tags=["t"]) == []
        asked_at = last_asked(lithos, note)
        assert await cited_for(lithos, note) == [
            {"question": QUESTION, "weight": 0.4, "for": 1.0, "against": 0.0, "last_at": asked_at}
        ]
        assert await cited_for(lithos, other) == []
        await lithos.call("lithos_note_update", id=note, agent="ann", status="quarantined")
        assert await retrieve(lithos, QUESTION) == []
        await lithos.call("lithos_note_update", id=note, agent="ann", status="active")
        assert len(await retrieve(lithos, QUESTION)) == 1
        await lithos.call("lithos_delete", id=note, agent="ann")
        assert await retrieve(lithos, QUESTION) == []


def last_asked(lithos: Lithos, note: str) -> str:
    sql = "SELECT last_at FROM question_memory WHERE note_id=?"
    database = lithos.data / ".lithos" / "stats.db"
    # Open the database read-only. Closing a writable connection here would release the locks of this
    # process's server.
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as reader:
        ((moment,),) = reader.execute(sql, (note,)).fetchall()
    return str(moment)


async def test_question_words_are_shown_only_to_readers_of_the_namespace(tmp_path: Path) -> None:
    async with serving(tmp_path, search=LITERAL) as lithos:
        note = await lithos.create("Zebra", "zebra", namespace="a")
        await teach(lithos, "zebra please", [note])
        await lithos.write("Zebra", "zebra", id=note, namespace="b")
        (open_to_all,) = await retrieve(lithos, "zebra please")
        assert open_to_all["reasons"][0] == "cited for: zebra please"
        (elsewhere,) = await retrieve(lithos, "zebra please", namespace_filter=["b"])
        assert elsewhere["reasons"][0] == "was cited for a question much like this one"
        assert elsewhere["score"] == open_to_all["score"]


async def test_words_of_a_private_question_are_never_shown(tmp_path: Path) -> None:
    async with serving(tmp_path, search=LITERAL) as lithos:
        shared = await lithos.create("Zebra", "zebra")
        await lithos.create("Mine", "zebra", agent="ann", access_scope="agent_private")
        await teach(lithos, "zebra and my secret", [shared])
        for agent in ("ann", "bob"):
            row = next(each for each in await retrieve(lithos, "zebra and my secret", agent_id=agent))
            assert row["id"] == shared
            assert row["reasons"][0] == "was cited for a question much like this one"
        (known,) = await cited_for(lithos, shared)
        assert known["question"] is None
        # Another agent asks the same question openly. From then on, its words are not private.
        await teach(lithos, "zebra and my secret", [shared], agent_id="bob")
        (known,) = await cited_for(lithos, shared)
        assert known["question"] == "zebra and my secret"


async def test_feedback_without_a_question_stores_no_question(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Zebra", "zebra", tags=["t"])
        await teach(lithos, "  ", [note], tags=["t"])
        task = await create(lithos)
        await lithos.call("lithos_task_complete", task_id=task, agent="ann", cited_nodes=[note])
        await teach(lithos, "zebra", [])
        await teach(lithos, "zebra", [], [note])
        assert await cited_for(lithos, note) == []


async def test_question_may_have_any_length(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Zebra", "zebra")
        long = "why is the zebra striped? " * 4_000
        assert len(long) > 100_000
        await teach(lithos, long, [note])
        (row,) = await retrieve(lithos, long)
        assert row["reasons"][0].startswith("cited for: why is the zebra striped?")
        assert len(row["reasons"][0]) < 320
        (known,) = await cited_for(lithos, note)
        assert known["question"] == long[:2_000]


async def test_search_works_when_the_learned_memory_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """behaviour 144"""
    async with serving(tmp_path) as lithos:
        ids = await cook(lithos)
        await teach(lithos, QUESTION, [ids["Cluster sizes"]])
        learning = lithos.server.get(Learning)
        learning._store.remembered.begin(None, 0)
        submit = learning.submit

        async def refuse(command: Any) -> Any:
            if isinstance(command, LoadQuestions):
                raise StorageFailed("the disk is gone")
            return await submit(command)

        monkeypatch.setattr(learning, "submit", refuse)
        answer = await lithos.call("lithos_retrieve", query=QUESTION)
        assert (answer["degraded"], answer["failed_scouts"]) == (True, [])
        assert answer["results"][0]["title"] == "Cluster sizes"
        monkeypatch.undo()
        assert (await retrieve(lithos, QUESTION))[0]["reasons"][0] == f"cited for: {QUESTION}"


@pytest.mark.parametrize("leg", ["lexical", "vector"])
async def test_failed_search_part_is_reported_as_a_failed_scout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leg: str
) -> None:
    """behaviour 144"""

    async def crash(*_: object) -> NoReturn:
        raise RuntimeError("a bug")

    async with serving(tmp_path) as lithos:
        await cook(lithos)
        index = (
            lithos.server.get(SemanticBackend).port
            if leg == "vector"
            else lithos.server.get(Search)._fulltext
        )
        index.tell_behind("it is late")
        answer = await lithos.call("lithos_retrieve", query="bread oven")
        assert (answer["degraded"], answer["failed_scouts"]) == (True, [f"scout_{leg}"])
        assert {row["title"] for row in answer["results"]} >= {"Sourdough", "Flat bread"}
        index.tell_behind(None)
        monkeypatch.setattr(lithos.server.get(Search), "rank_hybrid", crash)
        answer = await lithos.call("lithos_retrieve", query="Sourdough")
        assert answer["failed_scouts"] == ["scout_vector", "scout_lexical"]
        assert [row["title"] for row in answer["results"]] == ["Sourdough"]


# -- upkeep --------------------------------------------------------------------------------------


async def test_remembered_questions_move_with_the_note(tmp_path: Path) -> None:
    """behaviour 268"""
    async with serving(tmp_path, search=LITERAL) as lithos:
        text = "The zebra lives in herds of many animals, grazes by day and is hunted by lions at night."
        note, other = await lithos.create("Zebra", text), await lithos.create("Lion", "lion zebra")
        await teach(lithos, "zebra question", [note, other])

        async def counts(one: str) -> list[tuple[float, float]]:
            await worker(lithos).drain()
            return [(each["for"], each["against"]) for each in await cited_for(lithos, one)]

        # The note keeps its remembered questions after it is moved and slightly edited.
        await lithos.write("Zebra", text, id=note, path="elsewhere")
        await lithos.write("Zebra", text.replace("night", "dusk") + "\n\nMore of it.", id=note)
        assert await counts(note) == [(1, 0)]
        await lithos.write("Zebra", "Now about something different: a striped crossing of roads.", id=note)
        assert await counts(note) == [(0.5, 0)]
        assert await counts(note) == [(0.5, 0)]
        await lithos.call("lithos_delete", id=note, agent="ann")
        await worker(lithos).drain()
        assert len(lithos.server.get(Learning)._store.remembered) == 1
        assert await lithos.server.get(Learning).read(lambda tables: tables.questions.notes()) == [other]


async def test_rewrite_without_a_running_server_halves_the_evidence(tmp_path: Path) -> None:
    """behaviour 268"""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Zebra", "The zebra lives in herds of many animals.")
        gone = await lithos.create("Gone", "zebra")
        await teach(lithos, "zebra", [note, gone])
    file = tmp_path / "knowledge" / "zebra.md"
    file.write_text(file.read_text().replace("lives in herds of many animals", "crossing: stripes on roads"))
    (tmp_path / "knowledge" / "gone.md").unlink()
    async with serving(tmp_path) as lithos:
        await worker(lithos).drain()
        await lithos.server.get(QuestionUpkeep).tidy()
        ((known),) = await cited_for(lithos, note)
        assert known["for"] == 0.5
        assert await lithos.server.get(Learning).read(lambda tables: tables.questions.notes()) == [note]


async def test_number_of_remembered_questions_is_limited(tmp_path: Path) -> None:
    """behaviour 268"""
    clock = Clock()
    async with serving(tmp_path, clock=clock, lcma=LcmaConfig(questions_kept=3)) as lithos:
        note = await lithos.create("Zebra", "zebra")
        for number in range(5):
            clock.advance(minutes=1)
            await teach(lithos, f"zebra question number {number}", [note])
        kept = {each["question"][-1] for each in await cited_for(lithos, note)}
        assert kept == {"2", "3", "4"}
        assert len(lithos.server.get(Learning)._store.remembered) == 3
    async with serving(tmp_path, lcma=LcmaConfig(questions_kept=1)) as lithos:
        await lithos.server.get(QuestionUpkeep).tidy()
        assert [each["question"][-1] for each in await cited_for(lithos, note)] == ["4"]


async def test_questions_survive_restart_and_get_vectors_of_new_models(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        ids = await cook(lithos)
        await teach(lithos, QUESTION, [ids["Cluster sizes"]])
        before = await retrieve(lithos, QUESTION)
    async with serving(tmp_path) as lithos:
        after = await retrieve(lithos, QUESTION)
        assert [told(row) for row in after] == [told(row) for row in before]
    with sqlite3.connect(tmp_path / ".lithos" / "stats.db") as other:
        other.execute("UPDATE question_memory SET embedder='former', vector=zeroblob(64)")
    other.close()
    async with serving(tmp_path) as lithos:
        with trio.fail_after(60):
            while not len(lithos.server.get(Learning)._store.remembered):
                await trio.sleep(0.02)
        (row, *_) = await retrieve(lithos, QUESTION)
        assert (row["score"], row["reasons"][0]) == (before[0]["score"], f"cited for: {QUESTION}")
