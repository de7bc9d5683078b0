"""Retrieval if scouts fail, hang or crash, or if the receipt cannot be stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

import attrs
import pytest
import trio

from lithos.kernel.actors.threads import Inline
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.metrics import Metrics
from lithos.kernel.values.errors import InvalidInput, LcmaDisabled, StorageFailed
from lithos.memory.model.memory import NodeStats, RecordRetrieval, SurfacedConflict
from lithos.memory.model.questions import RememberedQuestion
from lithos.memory.model.salience import salience_of
from lithos.memory.retrieve.evidence import EvidencePipeline
from lithos.memory.retrieve.retrieve import Retrieve, RetrieveAnswer, RetrieveRequest
from lithos.memory.retrieve.scout_team import Team
from lithos.memory.retrieve.scouts import DEADLINE, Dispatcher, Find, Scout, ScoutRequest
from lithos.memory.rows.question_matrix import Evidence
from lithos.memory.settings import LcmaConfig
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.service.texts import Snippets
from lithos.search.index.fulltext_schema import Filters
from lithos.search.ranking.ranking import ScoutHit
from lithos.search.service.hybrid import NOTHING_RANKED, HybridRanking
from lithos.search.settings import SearchConfig
from tests.fakes import Clock, make_entry

A, B, C = (make_entry(number, title=title) for number, title in enumerate("ABC", start=1))
SERIALS = {entry.note.id: entry.serial for entry in (A, B, C)}


def finding(*entries: Entry) -> Find:
    async def find(ask: ScoutRequest) -> Sequence[ScoutHit]:
        return [ScoutHit(entry.note.id, 1.0, "was told so") for entry in entries]

    return find


async def crash(ask: ScoutRequest) -> NoReturn:
    raise RuntimeError("a bug in a scout")


async def hang(ask: ScoutRequest) -> NoReturn:
    await trio.sleep_forever()
    raise AssertionError


async def no_contradictions(ask: ScoutRequest) -> Sequence[SurfacedConflict]:
    return ()


@attrs.define
class Memory:
    """Memory that stores receipts and returns statistics, as `Learning` does."""

    recorded: list[RecordRetrieval] = attrs.field(factory=list)
    known: dict[str, NodeStats] = attrs.field(factory=dict)
    refusal: Exception | None = None
    unreadable: bool = False

    async def submit(self, command: RecordRetrieval) -> Mapping[str, NodeStats]:
        await trio.lowlevel.checkpoint()
        if self.refusal is not None:
            raise self.refusal
        self.recorded.append(command)
        return self.known

    async def stats(self, node_ids: Iterable[str]) -> Mapping[str, NodeStats]:
        await trio.lowlevel.checkpoint()
        if self.unreadable:
            raise DatabaseFailed("no such table")
        return {note_id: self.known[note_id] for note_id in node_ids if note_id in self.known}


class Current:
    """Indexes that are up to date."""

    async def reach(self) -> None:
        await trio.lowlevel.checkpoint()


class NoTexts:
    """Notes with one and the same text."""

    async def map_visible(self, entries: Sequence[Entry], work: Callable[[int, str, str], str]) -> list[str]:
        await trio.lowlevel.checkpoint()
        return [work(position, "text", "text") for position in range(len(entries))]


class FakeSearch:
    """Hybrid search that returns the given notes, best score first, or fails or hangs as configured."""

    def __init__(self, find: Find) -> None:
        self._find = find

    async def rank_hybrid(self, query: str, filters: Filters, wanted: int) -> HybridRanking:
        ask: Any = None
        found = await self._find(ask)
        scores = [(SERIALS[each.id], 1 / (1 + place)) for place, each in enumerate(found)]
        return attrs.evolve(NOTHING_RANKED, scores=scores, lexical=dict(scores))

    def judged(self, ranking: HybridRanking) -> None:
        return None


class Trusting:
    """Lineage in which no note is suspect."""

    async def settle(self) -> None:
        await trio.lowlevel.checkpoint()

    def is_suspect(self, note_id: str) -> bool:
        return False


class NoQuestions:
    """Memory without stored questions."""

    async def weigh(self, query: str) -> Sequence[Evidence]:
        await trio.lowlevel.checkpoint()
        return ()

    async def questions(self, entries: Iterable[int]) -> Mapping[int, RememberedQuestion]:
        await trio.lowlevel.checkpoint()
        return {}


class Room:
    """Retrieval pipeline with fakes.

    A test sets the results of `search`, and the actions of the scouts by name.
    """

    def __init__(
        self, search: Find, first: Mapping[str, Find] | None = None, second: Mapping[str, Find] | None = None
    ) -> None:
        self.catalogue = Catalogue()
        self.catalogue.load([A, B, C])
        self.memory, self.clock, self.metrics = Memory(), Clock(), Metrics()
        self.texts: Any = NoTexts()
        self.contradict: Any = no_contradictions
        self.settings = LcmaConfig()
        self._search, self._first, self._second = search, first or {}, second or {}

    async def retrieve(self, **asked: Any) -> RetrieveAnswer:
        dispatcher = Dispatcher(self.catalogue, self.metrics)
        team = Team(_team(self._first), _team(self._second), self.contradict)
        visibility: Any = Current()
        search: Any = FakeSearch(self._search)
        questions: Any = NoQuestions()
        lineage: Any = Trusting()
        pipeline = EvidencePipeline(self.catalogue, search, questions, dispatcher, team, Inline(), lineage)
        snippets = Snippets(self.texts, None)  # type: ignore[arg-type]
        retrieve = Retrieve(
            settings=SearchConfig(),
            lcma=self.settings,
            catalogue=self.catalogue,
            clock=self.clock,
            visibility=visibility,
            metrics=self.metrics,
            team=team,
            pipeline=pipeline,
            snippets=snippets,
            recorder=self.memory,  # type: ignore[arg-type]
            dispatcher=dispatcher,
        )
        return await retrieve.retrieve(RetrieveRequest(**{"query": "q"} | asked))

    def count(self, name: str) -> float:
        lines = self.metrics.render([]).decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"lithos_{name}"))


def _team(scouts: Mapping[str, Find]) -> tuple[Scout, ...]:
    return tuple(Scout(name, find) for name, find in scouts.items())


def titles(answer: RetrieveAnswer) -> list[str]:
    return [result.hit.entry.note.title for result in answer.results]


@pytest.mark.autojump
@pytest.mark.parametrize("fail", [crash, hang])
async def test_failing_or_hanging_scout_is_ignored(fail: Any) -> None:
    """behaviour 144"""
    room = Room(
        finding(A), {"freshness": fail, "exact_alias": finding()}, {"graph": finding(B), "provenance": fail}
    )
    began = trio.current_time()
    answer = await room.retrieve()
    assert titles(answer) == ["A", "B"]
    assert answer.degraded
    assert answer.failed_scouts == ("scout_freshness", "scout_provenance")
    (kept,) = room.memory.recorded
    assert kept.receipt is answer.receipt
    assert kept.receipt.scouts_fired == ("scout_vector", "scout_lexical", "scout_exact_alias", "scout_graph")
    # The two scout phases wait for their slowest scout, but not beyond the deadline.
    assert trio.current_time() - began == (2 * DEADLINE if fail is hang else 0)
    assert room.count("lcma_scout_failures_total{") == 2


async def test_empty_answer_has_a_receipt_when_all_scouts_fail() -> None:
    """behaviours 141, 144"""
    room = Room(crash, {"exact_alias": crash}, {"graph": finding(A)})
    room.contradict = crash
    answer = await room.retrieve(surface_conflicts=True)
    assert (answer.results, answer.conflicts, answer.degraded) == ((), (), True)
    assert answer.failed_scouts == ("scout_vector", "scout_lexical", "scout_exact_alias")
    (kept,) = room.memory.recorded
    assert (kept.receipt.scouts_fired, kept.receipt.terrace_reached) == ((), 1)
    assert kept.note_ids == ()


async def test_results_are_returned_when_contradictions_are_unreadable() -> None:
    """behaviour 144"""
    room = Room(finding(A))
    room.contradict = crash
    answer = await room.retrieve(surface_conflicts=True)
    assert (titles(answer), answer.conflicts) == (["A"], ())
    assert answer.failed_scouts == ("scout_contradictions",)


async def test_crashed_retrieval_leaves_a_receipt_that_shows_its_progress() -> None:
    """behaviour 141"""
    room = Room(finding(A), {"exact_alias": crash})

    class Broken:
        async def map_visible(self, *_: object) -> NoReturn:
            raise RuntimeError("a bug in the texts")

    room.texts = Broken()
    with pytest.raises(RuntimeError, match="a bug in the texts"):
        await room.retrieve(task_id="t", agent_id="a")
    (kept,) = room.memory.recorded
    assert (kept.receipt.terrace_reached, kept.receipt.scouts_fired) == (0, ("scout_vector", "scout_lexical"))
    assert (kept.receipt.final_nodes, kept.note_ids) == ((), ())
    assert (kept.receipt.query, kept.receipt.task_id, kept.receipt.agent_id) == ("q", "t", "a")


@pytest.mark.autojump
async def test_receipt_is_stored_even_if_the_caller_disconnects() -> None:
    """behaviour 141"""
    room = Room(hang)
    with trio.move_on_after(DEADLINE / 2) as scope:
        await room.retrieve()
    assert scope.cancelled_caught
    (kept,) = room.memory.recorded
    assert kept.receipt.terrace_reached == 0


async def test_answer_is_degraded_when_its_receipt_cannot_be_stored() -> None:
    """behaviour 141"""
    room = Room(finding(A))
    room.memory.refusal = StorageFailed("the disk is full")
    answer = await room.retrieve()
    assert (titles(answer), answer.degraded, answer.failed_scouts) == (["A"], True, ())


async def test_notes_without_statistics_count_as_new() -> None:
    """behaviour 148"""
    room = Room(finding(A, B))
    room.memory.known = {B.note.id: NodeStats(node_id=B.note.id, cited_count=20)}
    answer = await room.retrieve()
    assert [(r.hit.entry, salience_of(r.stats)) for r in answer.results] == [(A, 0.5), (B, 0.9)]
    assert not answer.degraded
    room.memory.unreadable, room.memory.refusal = True, StorageFailed("the disk is full")
    answer = await room.retrieve()
    assert [(r.hit.entry, salience_of(r.stats)) for r in answer.results] == [(A, 0.5), (B, 0.5)]
    assert (answer.degraded, answer.failed_scouts) == (True, ())


async def test_note_deleted_or_hidden_during_retrieval_is_omitted() -> None:
    """behaviour 142"""
    room = Room(finding(A, B, C))

    async def change(ask: ScoutRequest) -> Sequence[ScoutHit]:
        room.catalogue.remove(A.note.id)
        room.catalogue.put(attrs.evolve(B, note=attrs.evolve(B.note, status="quarantined")))
        return ()

    room._second = {"graph": change}
    answer = await room.retrieve()
    assert titles(answer) == ["C"]
    assert [node.id for node in answer.receipt.final_nodes] == [C.note.id]


async def test_access_gate_filters_unchecked_notes_from_scouts() -> None:
    """behaviour 142"""
    hidden = attrs.evolve(B, note=attrs.evolve(B.note, access_scope="agent_private", author="eve"))
    room = Room(finding(A, hidden), {"exact_alias": finding(hidden)}, {"graph": finding(hidden)})
    room.catalogue.put(hidden)
    answer = await room.retrieve(agent_id="ann")
    assert (titles(answer), answer.receipt.candidates_considered) == (["A"], 1)
    assert titles(await room.retrieve(agent_id="eve")) == ["A", "B"]


async def test_ranking_of_thousands_equals_the_ranking_of_few_candidates() -> None:
    many = [make_entry(number, f"f/n{number}.md") for number in range(10, 3010)]
    room = Room(finding(A), {"freshness": finding(A, *many)})
    room.catalogue.load([A, B, C, *many])
    answer = await room.retrieve(limit=3)
    assert answer.receipt.candidates_considered == 3001
    assert titles(answer)[0] == "A"


async def test_invalid_request_leaves_no_receipt() -> None:
    room = Room(crash)
    with pytest.raises(InvalidInput, match="max_context_nodes"):
        await room.retrieve(max_context_nodes=0)
    room.settings = attrs.evolve(room.settings, enabled=False)
    with pytest.raises(LcmaDisabled):
        await room.retrieve()
    assert room.memory.recorded == []


async def test_retrievals_and_cold_starts_are_counted() -> None:
    room = Room(finding(A, B), {"exact_alias": finding(A, B)})
    await room.retrieve()
    await room.retrieve()
    assert room.count("lcma_cold_start_total") == 2
    assert room.count("lcma_retrieve_duration_seconds_count") == 2
    assert room.count("lcma_retrieve_candidates_sum") == room.count("lcma_retrieve_final_nodes_sum") == 4
    assert room.count("lcma_scout_candidates_sum{") == 4
