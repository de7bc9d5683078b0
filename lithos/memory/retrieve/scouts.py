"""Scouts (candidate generators). They run concurrently, with deadlines and isolated failures.

Relation scouts find notes from a task, and the neighbours of seeds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from time import perf_counter
from typing import Final, TypeAlias, TypeVar

import trio
from attrs import define, field, frozen

from lithos.kernel.actors.threads import slices
from lithos.kernel.log import get_logger
from lithos.kernel.metrics import Metrics
from lithos.kernel.values.graphemes import beginning
from lithos.memory.model.memory import SurfacedConflict
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.catalogue.index_links import Direction, LinkGraph
from lithos.notes.model.edges import CONTRADICTS, Edge, other_end
from lithos.search.ranking.ranking import SCOUTS, ScoutHit
from lithos.search.service.hybrid import HybridRanking
from lithos.search.service.retrieval_filter import RetrievalFilter
from lithos.tasks.service.coordination import Coordination

_LINK_SCORE: Final = 0.5
#: States in which a contradiction is open. In all other states it is settled.
_OPEN_STATES: Final = (None, "accepted_dual")

#: Function that returns the typed edges that start or end at any of these notes.
EdgesTouching: TypeAlias = Callable[[Collection[str]], Awaitable[Sequence[Edge]]]


@frozen
class RelationScouts:
    """Scouts that follow relations. They raise the errors of the databases."""

    catalogue: Catalogue
    edges_touching: EdgesTouching
    findings: Coordination

    async def find_of_task(self, ask: ScoutRequest) -> Sequence[ScoutHit]:
        """Return the notes named in the findings of the task, and the notes made for the task.

        Each note scores 1.0.
        """
        task_id = ask.gate.task_id
        assert task_id is not None
        named = [
            ScoutHit(finding.knowledge_id, 1.0, "is named by a finding of the task")
            for finding in await self.findings.findings(task_id, None)
            if finding.knowledge_id is not None
        ]
        made: list[ScoutHit] = []
        async for some in slices(self.catalogue.serials(), CHEAP_SLICE):
            made += [
                ScoutHit(entry.note.id, 1.0, "was written for the task")
                for entry in self.catalogue.at_serials(some)
                if entry.note.source == task_id
            ]
        return [*named, *made]

    async def find_sources(self, ask: ScoutRequest) -> Sequence[ScoutHit]:
        """Return the sources of the seeds, and the notes derived from the seeds. Each note scores 1.0."""
        graph = self.catalogue.graph.provenance
        found: list[ScoutHit] = []
        async for some in slices(ask.seeds):
            for seed in some:
                found += _beside(graph, seed, "outgoing", 1.0, f"is a source of {quote(seed)}")
                found += _beside(graph, seed, "incoming", 1.0, f"was derived from {quote(seed)}")
        return _without_seeds(found, ask)

    async def find_neighbours(self, ask: ScoutRequest) -> Sequence[ScoutHit]:
        """Return the notes that have a link to or from a seed.

        A link scores 0.5, and a typed edge scores its weight. If a note has several scores, the best one
        counts.
        """
        graph = self.catalogue.graph.links
        found: list[ScoutHit] = []
        async for some in slices(ask.seeds):
            for seed in some:
                found += _beside(graph, seed, "both", _LINK_SCORE, f"is linked with {quote(seed)}")
        for edge in await self.edges_touching(ask.seed_ids):
            found += self._ends(edge, ask)
        return _best_per_note(_without_seeds(found, ask))

    def _ends(self, edge: Edge, ask: ScoutRequest) -> Iterator[ScoutHit]:
        for seed_id in {edge.from_id, edge.to_id} & ask.seed_ids:
            seed = self.catalogue.get(seed_id)
            if seed is not None:
                reason = f"has an edge {edge.type!r} with {quote(seed)}"
                yield ScoutHit(other_end(edge, seed_id), edge.weight, reason)

    async def find_contradictions(self, ask: ScoutRequest) -> list[SurfacedConflict]:
        """Return unsettled contradictions of seeds, oldest first. Both notes must exist and be visible."""
        return [
            SurfacedConflict(edge.id, edge.from_id, edge.to_id, edge.conflict_state)
            for edge in await self.edges_touching(ask.seed_ids)
            if edge.type == CONTRADICTS
            and edge.conflict_state in _OPEN_STATES
            and self._is_visible(edge.from_id, ask)
            and self._is_visible(edge.to_id, ask)
        ]

    def _is_visible(self, note_id: str, ask: ScoutRequest) -> bool:
        entry = self.catalogue.get(note_id)
        return entry is not None and ask.gate.shows(entry)


def _beside(
    graph: LinkGraph, seed: Entry, direction: Direction, score: float, reason: str
) -> Iterator[ScoutHit]:
    """Yield hits for the direct neighbours of a seed."""
    near = graph.reach([seed.note.id], 1, direction)
    return (ScoutHit(note_id, score, reason) for note_id in near)


def _without_seeds(found: Sequence[ScoutHit], ask: ScoutRequest) -> list[ScoutHit]:
    return [candidate for candidate in found if candidate.id not in ask.seed_ids]


def _best_per_note(found: Sequence[ScoutHit]) -> list[ScoutHit]:
    """Return the best hit of each note. If several hits are equally good, return the first."""
    best: dict[str, ScoutHit] = {}
    for candidate in found:
        known = best.get(candidate.id)
        if known is None or candidate.score > known.score:
            best[candidate.id] = candidate
    return list(best.values())


#: Maximum characters of a query for lexical and name scouts. The semantic scout gets the whole query.
LONGEST_QUERY: Final = 4_000
#: Number of notes to compare by one attribute per turn of the event loop. This takes a millisecond or less.
CHEAP_SLICE: Final = 2_000
#: Maximum number of characters of a title in a reason.
LONGEST_TITLE: Final = 80


@frozen(kw_only=True)
class ScoutRequest:
    """A request to a scout.

    `admitted` are all notes that pass the filter, known only if the filter is narrow. `seeds` are the best
    notes so far, for the scouts that start from seeds. `hybrid` is the search ranking of these notes, if its
    scale is comparable with the rankings of other vaults.
    """

    query: str
    limit: int
    gate: RetrievalFilter
    now: datetime
    admitted: Sequence[Entry] | None = None
    seeds: tuple[Entry, ...] = ()
    hybrid: HybridRanking | None = None
    seed_ids: frozenset[str] = field(init=False)
    #: Serials in the index of the admitted notes.
    admitted_serials: frozenset[int] | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "seed_ids", frozenset(entry.note.id for entry in self.seeds))
        serials = None if self.admitted is None else frozenset(entry.serial for entry in self.admitted)
        object.__setattr__(self, "admitted_serials", serials)

    @property
    def words(self) -> str:
        """Return the query, truncated to `LONGEST_QUERY` characters."""
        return self.query[:LONGEST_QUERY]


#: Function that generates candidates. A note may occur several times, and hidden notes are dropped later.
Find: TypeAlias = Callable[[ScoutRequest], Awaitable[Sequence[ScoutHit]]]


def always(ask: ScoutRequest) -> bool:
    """Accept every request. This is the condition of scouts that run in every retrieval."""
    return True


@frozen
class Scout:
    """A candidate generator. It runs only for requests that meet its condition `wants`."""

    name: str
    find: Find
    wants: Callable[[ScoutRequest], bool] = always


def quote(entry: Entry) -> str:
    """Return the title of a note in quotes, for use in a reason."""
    title = entry.note.title
    return f'"{title}"' if len(title) <= LONGEST_TITLE else f'"{beginning(title, LONGEST_TITLE)}…"'


log = get_logger("lithos.retrieve")

T = TypeVar("T")

#: Number of candidates to check per turn of the event loop. This takes a millisecond or less.
PASSED: Final = 500
#: Maximum seconds per scout. All scouts together normally take about ten milliseconds.
DEADLINE: Final = 2.0
CONTRADICTIONS: Final = "contradictions"
_ORDER: Final = (*SCOUTS, CONTRADICTIONS)


@define
class ScoutReport:
    """The candidates of each scout, and the scouts that ran or failed.

    A scout in `failed` has no candidates.
    """

    found: dict[str, list[ScoutHit]] = field(factory=dict)
    fired: set[str] = field(factory=set)
    failed: set[str] = field(factory=set)


def name_scouts(names: Iterable[str]) -> tuple[str, ...]:
    """Return the public names of the scouts, in table order."""
    return tuple(f"scout_{name}" for name in sorted(names, key=_ORDER.index))


@define
class Dispatcher:
    """The concurrent execution of scouts. Their candidates pass the access filter."""

    _catalogue: Catalogue
    _metrics: Metrics = field(factory=Metrics)

    async def send(self, scouts: Sequence[Scout], ask: ScoutRequest, report: ScoutReport) -> None:
        """Run all scouts whose condition is met, and add their candidates to the report."""
        async with trio.open_nursery() as nursery:
            for scout in scouts:
                if scout.wants(ask):
                    nursery.start_soon(self._send_one, scout, ask, report)

    async def _send_one(self, scout: Scout, ask: ScoutRequest, report: ScoutReport) -> None:
        found = await self.attempt(scout.name, lambda: scout.find(ask), report)
        if found is None:
            return
        passing = [candidate async for some in slices(found, PASSED) for candidate in self._pass(some, ask)]
        report.found[scout.name] = passing
        self._metrics.observe("lcma_scout_candidates", len(passing), f"scout_{scout.name}")

    async def attempt(
        self, name: str, look: Callable[[], Awaitable[T]], report: ScoutReport, *also: str
    ) -> T | None:
        """Return the result of `look`. Return None if it fails or exceeds its deadline.

        The report records whether it succeeded.

        `also` names further scouts that `look` represents.
        """
        began = perf_counter()
        try:
            await trio.lowlevel.checkpoint()  # The scouts of a phase take turns with all other tasks.
            with trio.fail_after(DEADLINE):
                found = await look()
        except Exception as failure:  # noqa: BLE001 - any answer is better than none (docs/spec/memory.md §1)
            log.warning("scout failed", scout=name, reason=repr(failure))
            for each in (name, *also):
                self.fail(each, report)
            return None
        for each in (name, *also):
            report.fired.add(each)
            self._metrics.observe("lcma_scout_duration_seconds", perf_counter() - began, f"scout_{each}")
        return found

    def fail(self, name: str, report: ScoutReport) -> None:
        """Record that a scout failed."""
        self._metrics.count("lcma_scout_failures", f"scout_{name}")
        report.fired.discard(name)
        report.failed.add(name)

    def _pass(self, found: Iterable[ScoutHit], ask: ScoutRequest) -> list[ScoutHit]:
        get, passes = self._catalogue.get, ask.gate.passes
        return [each for each in found if (entry := get(each.id)) is not None and passes(entry)]
