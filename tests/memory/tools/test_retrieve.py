"""`lithos_retrieve` on a complete server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.memory.model.memory import Receipt
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.settings import LcmaConfig
from lithos.search.embedding.embedder import load_embedder
from lithos.search.settings import SearchConfig
from lithos.server.tools.arguments import ArgumentFault
from tests.servers import MISSING_ID, Clock, Lithos, refusal, serving

KEYS = ["results", "temperature", "terrace_reached", "receipt_id", "degraded", "failed_scouts"]
ROW = [
    "id", "title", "snippet", "score", "path", "source_url", "updated_at", "is_stale", "derived_from_ids",
    "match", "reasons", "scouts", "salience", "usage_score",
]  # fmt: skip
#: Scouts that always run. The other scouts run only if the search finds seed notes.
ALWAYS = ("scout_vector", "scout_lexical", "scout_exact_alias")
#: All one-letter texts are similar. With this threshold, semantic search finds only identical texts.
LITERAL = SearchConfig(semantic_threshold=0.999)
FROM_SEEDS = ("scout_provenance", "scout_graph", "scout_source_url")


async def retrieve(lithos: Lithos, query: str = "zebra", **more: Any) -> dict[str, Any]:
    """Call `lithos_retrieve` and return the answer. Assert that the answer is complete."""
    answer: dict[str, Any] = await lithos.call("lithos_retrieve", query=query, **more)
    assert list(answer)[: len(KEYS)] == KEYS, answer
    assert (answer["degraded"], answer["failed_scouts"], answer["terrace_reached"]) == (False, [], 1)
    return answer


async def found(lithos: Lithos, query: str = "zebra", **more: Any) -> dict[str, list[str]]:
    """Return the titles of found notes, with the scouts that found each note."""
    answer = await retrieve(lithos, query, **more)
    return {row["title"]: row["scouts"] for row in answer["results"]}


async def receipt_of(lithos: Lithos, answer: dict[str, Any]) -> Receipt:
    receipt = await lithos.server.get(Learning).receipt(answer["receipt_id"])
    assert receipt is not None
    return receipt


async def connect(lithos: Lithos, start: str, end: str, type: str, **more: Any) -> str:
    arguments = {"weight": 1.0, "namespace": "default"} | more
    answer = await lithos.call("lithos_edge_upsert", from_id=start, to_id=end, type=type, **arguments)
    return str(answer["edge_id"])


async def test_retrieve_row_is_a_search_row_with_added_reasons(lithos: Lithos, clock: Clock) -> None:
    """behaviour 148"""
    note = await lithos.create("Zebra", "A striped animal.", source_url="https://e.org/z")
    answer = await retrieve(lithos, "zebra")
    assert list(answer) == KEYS
    assert answer["temperature"] == 0.5
    (row,) = answer["results"]
    assert list(row) == ROW
    assert (row["id"], row["path"], row["source_url"]) == (note, "zebra.md", "https://e.org/z")
    assert row["snippet"] == "A striped animal."
    assert row["scouts"] == ["scout_vector", "scout_lexical", "scout_exact_alias"]
    assert row["reasons"] == [
        "is close in meaning",
        "matches the words of the query",
        "is named by the query",
    ]
    assert row["score"] == 1.0  # the search score is 1.0 because the note is first in both rankings
    assert (row["salience"], row["usage_score"]) == (0.5, 0)


async def test_retrieval_stores_a_receipt_even_without_results(lithos: Lithos, clock: Clock) -> None:
    """behaviour 141"""
    empty = await retrieve(lithos, "zebra", limit=0, namespace_filter=["n"], agent_id="ann")
    assert empty["results"] == []
    assert await receipt_of(lithos, empty) == Receipt(
        id=empty["receipt_id"],
        ts=clock(),
        query="zebra",
        limit=1,
        namespace_filter=("n",),
        scouts_fired=ALWAYS,
        agent_id="ann",
    )
    note = await lithos.create("Zebra", "zebra", path="n")
    blank = await retrieve(lithos, " ")
    assert blank["results"] == []
    answer = await retrieve(lithos, "zebra", limit=999, task_id="t", surface_conflicts=True)
    receipt = await receipt_of(lithos, answer)
    assert (receipt.limit, receipt.surface_conflicts, receipt.task_id) == (50, True, "t")
    assert receipt.scouts_fired == (*ALWAYS, "scout_task_context", *FROM_SEEDS, "scout_contradictions")
    assert receipt.candidates_considered == 1
    (final,) = receipt.final_nodes
    (row,) = answer["results"]
    assert (final.id, list(final.reasons), list(final.scouts)) == (note, row["reasons"], row["scouts"])
    assert len({empty["receipt_id"], blank["receipt_id"], answer["receipt_id"]}) == 3
    assert await lithos.audit() == []


async def test_retrieved_results_are_counted(lithos: Lithos, clock: Clock) -> None:
    """behaviour 148"""
    one = await lithos.create("Zebra one", "zebra", path="n")
    await lithos.create("Zebra two", "zebra", path="n")
    learning = lithos.server.get(Learning)
    await retrieve(lithos)
    for _ in range(2):
        await retrieve(lithos, task_id="t1")
    stats = await learning.stats([one])
    assert (stats[one].retrieval_count, stats[one].last_retrieved_at) == (3, clock())
    row = (await retrieve(lithos))["results"][0]
    assert row["usage_score"] == pytest.approx(0.455340, abs=1e-5)  # the expected value is ln(4)/ln(21)


async def test_each_scout_finds_notes_by_its_own_criterion(tmp_path: Path) -> None:
    """behaviour 144"""
    async with serving(tmp_path, search=LITERAL) as lithos:
        seed = await lithos.create("Zebra", "zebra [[Linked]]", source_url="https://e.org/a")
        await lithos.create("Linked", "x")
        edged = await lithos.create("Edged", "x")
        await connect(lithos, edged, seed, "supports", weight=0.9)
        source = await lithos.create("Source", "x")
        await lithos.create("Derived", "x", derived_from_ids=[seed])
        await lithos.write("Zebra", "zebra [[Linked]]", id=seed, derived_from_ids=[source])
        await lithos.create("Same site", "x", source_url="https://e.org:444/b")
        await lithos.create("Other site", "x", source_url="https://other.org/b")
        by_scouts = await found(lithos)
        assert by_scouts["Zebra"] == ["scout_lexical", "scout_exact_alias"]
        assert by_scouts["Linked"] == by_scouts["Edged"] == ["scout_graph"]
        assert by_scouts["Source"] == by_scouts["Derived"] == ["scout_provenance"]
        assert by_scouts["Same site"] == ["scout_source_url"]
        assert "Other site" not in by_scouts
        await lithos.write("Zebra", "zebra", id=seed, derived_from_ids=[], source_url="")
        assert set(await found(lithos)) == {"Zebra", "Edged", "Derived"}


async def test_reasons_name_the_note_that_caused_them(tmp_path: Path) -> None:
    async with serving(tmp_path, search=LITERAL) as lithos:
        seed = await lithos.create("Zebra", "zebra [[Linked]]")
        await lithos.create("Linked", "x", derived_from_ids=[seed])
        edged = await lithos.create("Edged", "x")
        await connect(lithos, seed, edged, "supports")
        rows = {row["title"]: row for row in (await retrieve(lithos))["results"]}
        assert rows["Linked"]["reasons"] == ['was derived from "Zebra"', 'is linked with "Zebra"']
        assert rows["Edged"]["reasons"] == ["has an edge 'supports' with \"Zebra\""]


async def test_query_with_a_note_title_finds_the_note(tmp_path: Path) -> None:
    async with serving(tmp_path, search=LITERAL) as lithos:
        note = await lithos.create("Große Tabelle", "x", path="sub/other.md")
        other = await lithos.create("Unrelated", "y")
        assert note[:6] != other[:6]
        for query in ("grosse-tabelle", "Große Tabelle!", "sub/other", "other", note, note[:6].upper()):
            scouts = await found(lithos, query)
            assert scouts.get("Große Tabelle", [])[-1:] == ["scout_exact_alias"], (query, scouts)
        for query in (note[:5], " ", "other unrelated"):
            assert "scout_exact_alias" not in (await found(lithos, query)).get("Große Tabelle", [])


async def test_retrieval_by_tags_or_path_returns_the_newest_notes(tmp_path: Path) -> None:
    clock = Clock()
    async with serving(tmp_path, search=LITERAL, clock=clock) as lithos:
        for number in range(6):
            clock.advance(hours=1)
            await lithos.create(f"N{number}", "x", tags=["t"], path="f")
        await lithos.create("Other", "x", tags=["u"])
        for narrow in ({"tags": ["t"]}, {"path_prefix": "f/"}):
            answer = await retrieve(lithos, " ", limit=1, **narrow)
            assert [row["title"] for row in answer["results"]] == ["N5"]
            assert answer["results"][0]["scouts"] == ["scout_tags_recency"]
            assert "scout_tags_recency" in (await receipt_of(lithos, answer)).scouts_fired
            # The scout returns 3 x limit of the six notes. It sorts the notes by time before the cut.
            assert (await receipt_of(lithos, answer)).candidates_considered == 3
        for nothing in ({}, {"tags": [], "path_prefix": ""}):
            answer = await retrieve(lithos, " ", **nothing)
            assert answer["results"] == []
            assert "scout_tags_recency" not in (await receipt_of(lithos, answer)).scouts_fired


async def test_query_for_fresh_knowledge_returns_expiring_notes(tmp_path: Path) -> None:
    clock = Clock()
    async with serving(tmp_path, search=LITERAL, clock=clock) as lithos:
        await lithos.create("Stale", "x", ttl_hours=1)
        await lithos.create("Fresh", "x", ttl_hours=99)
        await lithos.create("Forever", "x")
        clock.advance(hours=2)
        answer = await retrieve(lithos, "Anything to REFRESH?")
        rows = {row["title"]: row for row in answer["results"]}
        assert set(rows) == {"Stale", "Fresh"}
        assert rows["Stale"]["is_stale"]
        assert await found(lithos, "anything refreshing") == {}


async def test_notes_found_only_by_scouts_have_no_score(tmp_path: Path) -> None:
    """behaviour 266"""
    clock = Clock()
    async with serving(tmp_path, search=LITERAL, clock=clock) as lithos:
        for number in range(3):
            await lithos.create(f"Fresh {number}", "x", ttl_hours=99)
            await lithos.create(f"Stale {number}", "x", ttl_hours=1)
        await lithos.create("Zebra", "refresh the zebra")
        clock.advance(hours=2)
        rows = (await retrieve(lithos, "Refresh the zebra"))["results"]
        assert rows[0]["title"] == "Zebra"
        assert [row["score"] > 0 for row in rows] == [True] + 6 * [False]
        assert [row["is_stale"] for row in rows] == [False] + 3 * [True] + 3 * [False]


async def test_task_adds_notes_from_findings_and_notes_written_for_it(tmp_path: Path) -> None:
    """behaviour 143"""
    async with serving(tmp_path, search=LITERAL) as lithos:
        task = (await lithos.call("lithos_task_create", title="T", agent="ann"))["task_id"]
        named = await lithos.create("Named", "x")
        await lithos.create("Written", "x", source_task=task, access_scope="task")
        for knowledge in (named, MISSING_ID, None):
            await lithos.call(
                "lithos_finding_post", task_id=task, agent="ann", summary="s", knowledge_id=knowledge
            )
        expected = {"Named": ["scout_task_context"], "Written": ["scout_task_context"]}
        assert await found(lithos, "nothing else", task_id=task) == expected
        assert await found(lithos, "nothing else") == {}


HIDDEN: dict[str, dict[str, Any]] = {
    "quarantined": {"status": "quarantined"},
    "private": {"access_scope": "agent_private"},
    "task": {"access_scope": "task", "source_task": "t9"},
    "namespace": {"namespace": "elsewhere"},
}


@pytest.mark.parametrize("hidden", HIDDEN)
async def test_scouts_do_not_return_hidden_notes(lithos: Lithos, hidden: str) -> None:
    """behaviours 142, 143"""
    asked: dict[str, Any] = {"tags": ["t"], "task_id": "t1", "agent_id": "bob", "namespace_filter": ["here"]}
    fields = {"tags": ["t"], "ttl_hours": 1, "namespace": "here", "source_task": "t1"} | HIDDEN[hidden]
    open_to_all = {"status": "active", "access_scope": "shared", "namespace": "here"}
    visible = await lithos.create(
        "Seed", "zebra [[Zebra]]", source_url="https://e.org/a", **fields | open_to_all
    )
    note = await lithos.create(
        "Zebra", "latest zebra", source_url="https://e.org/b", derived_from_ids=[visible], **fields
    )
    await connect(lithos, visible, note, "contradicts", namespace="here")
    await lithos.call("lithos_finding_post", task_id="t1", agent="ann", summary="s", knowledge_id=note)
    for query in ("zebra", "latest zebra", note):
        answer = await retrieve(lithos, query, surface_conflicts=True, **asked)
        assert note not in [row["id"] for row in answer["results"]]
        assert answer["conflicts"] == []
        receipt = await receipt_of(lithos, answer)
        assert receipt.candidates_considered == len(answer["results"])


async def test_hidden_notes_do_not_displace_visible_notes(lithos: Lithos) -> None:
    """behaviour 142"""
    for number in range(12):
        await lithos.create(f"Zebra {number}", "zebra zebra", access_scope="agent_private", agent="eve")
    await lithos.create("Plain", "One zebra among many other animals of the steppe.")
    scouts = (await found(lithos, "zebra", limit=1))["Plain"]
    assert scouts == ["scout_vector", "scout_lexical"]


async def test_scoped_notes_are_shown_only_to_their_agents(lithos: Lithos) -> None:
    """behaviours 142, 143"""
    await lithos.create("Private", "zebra", agent="ann", access_scope="agent_private")
    await lithos.create("Task", "zebra", source_task="t1", access_scope="task")
    await lithos.create("Archived", "zebra", status="archived", namespace="a/b")
    for asked, titles in (
        ({}, {"Archived"}),
        ({"agent_id": "ann"}, {"Archived", "Private"}),
        ({"agent_id": "tester"}, {"Archived"}),
        ({"task_id": "t1"}, {"Archived", "Task"}),
        ({"task_id": "t2"}, {"Archived"}),
        ({"namespace_filter": ["a/b"], "agent_id": "ann"}, {"Archived"}),
        ({"namespace_filter": ["a"]}, set()),
        ({"namespace_filter": ["default", "x"], "agent_id": "ann"}, {"Private"}),
        ({"namespace_filter": []}, {"Archived"}),
    ):
        assert set(await found(lithos, **asked)) == titles, asked


async def test_contradictions_are_returned_on_request(lithos: Lithos) -> None:
    """behaviour 150"""
    seed = await lithos.create("Zebra", "zebra", tags=["t"])
    others = [await lithos.create(f"Other {number}", "x") for number in range(3)]
    state = {"open": None, "dual": "accepted_dual", "refuted": "refuted"}
    edges = {
        name: await connect(lithos, other, seed, "contradicts", conflict_state=of_edge)
        for other, (name, of_edge) in zip(others, state.items(), strict=True)
    }
    await connect(lithos, seed, others[0], "supports")
    await connect(lithos, seed, MISSING_ID, "contradicts")
    await connect(lithos, others[0], others[1], "contradicts")
    expected = [
        {"edge_id": edges["open"], "from_id": others[0], "to_id": seed, "conflict_state": None},
        {"edge_id": edges["dual"], "from_id": others[1], "to_id": seed,
         "conflict_state": "accepted_dual"},
    ]  # fmt: skip
    # The contradicting notes do not need the requested tags.
    answer = await retrieve(lithos, tags=["t"], surface_conflicts=True)
    assert list(answer) == [*KEYS, "conflicts"]
    assert answer["conflicts"] == expected
    shown = (await receipt_of(lithos, answer)).conflicts_surfaced
    assert [conflict.edge_id for conflict in shown] == [edges["open"], edges["dual"]]
    assert list(await retrieve(lithos, tags=["t"])) == KEYS
    assert (await retrieve(lithos, "nothing", tags=["none"], surface_conflicts=True))["conflicts"] == []


async def test_max_context_nodes_limits_the_number_of_seed_notes(tmp_path: Path) -> None:
    async with serving(tmp_path, search=LITERAL) as lithos:
        await lithos.create("Zebra", "zebra zebra [[First]]")
        await lithos.create("Also", "One zebra among many other animals of the steppe. [[Second]]")
        await lithos.create("First", "x")
        await lithos.create("Second", "x")
        assert set(await found(lithos, max_context_nodes=1)) == {"Zebra", "Also", "First"}
        assert set(await found(lithos)) == {"Zebra", "Also", "First", "Second"}
        assert set(await found(lithos, max_context_nodes=0)) == {"Zebra", "Also", "First", "Second"}
        answer = await lithos.call("lithos_retrieve", query="zebra", max_context_nodes=-3)
        assert "max_context_nodes" in refusal(answer, "invalid_input")


async def test_note_whose_file_is_deleted_is_omitted(lithos: Lithos) -> None:
    await lithos.create("Zebra", "zebra")
    await lithos.create("Another", "zebra")
    (lithos.knowledge / "zebra.md").unlink()
    answer = await retrieve(lithos)
    assert [row["title"] for row in answer["results"]] == ["Another"]
    assert len((await receipt_of(lithos, answer)).final_nodes) == 1


async def test_retrieve_is_refused_and_stores_nothing_when_lcma_is_off(tmp_path: Path) -> None:
    async with serving(tmp_path, lcma=LcmaConfig(enabled=False)) as lithos:
        await lithos.create("Zebra", "zebra")
        answer = await lithos.call("lithos_retrieve", query="zebra", task_id="t")
        assert "lithos_search" in refusal(answer, "lcma_disabled")
        assert not (tmp_path / ".lithos" / "stats.db").exists()


async def test_query_may_have_any_length_and_content(lithos: Lithos) -> None:
    await lithos.create("Zebra", "zebra")
    for query in ("zebra " * 20_000, '"zebra', "[[zebra|", "語" * 5_000, "latest"):
        assert list(await retrieve(lithos, query)) == KEYS
    with pytest.raises(ArgumentFault):
        await lithos.call("lithos_retrieve")


async def test_answer_reports_when_semantic_search_is_not_ready(tmp_path: Path) -> None:
    """behaviour 144"""
    released = trio.Event()

    def load_late(name: str) -> Any:
        trio.from_thread.run(released.wait)
        return load_embedder(name)

    async with serving(tmp_path, load=load_late, settled=False) as lithos:
        await lithos.create("Zebra", "zebra")
        answer = await lithos.call("lithos_retrieve", query="zebra")
        assert (answer["degraded"], answer["failed_scouts"]) == (True, ["scout_vector"])
        assert [row["title"] for row in answer["results"]] == ["Zebra"]
        assert "scout_vector" not in (await receipt_of(lithos, answer)).scouts_fired
        released.set()
        await lithos.server.searchable()
        assert (await found(lithos))["Zebra"] == list(ALWAYS)
