"""Scouts that traverse relations: from a task to notes, and from seeds to their neighbours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from attrs import frozen

from lithos.actors.blocking import slices
from lithos.catalogue.catalogue import Catalogue, Entry
from lithos.core.learning.edges import CONTRADICTS, Edge, other_end
from lithos.core.learning.memory import SurfacedConflict
from lithos.core.learning.ranking import Candidate
from lithos.core.tasks.model import Finding
from lithos.services.retrieve.scouts import CHEAP_SLICE, Ask, Scout, quote
from lithos.stores.indexes.linkgraph import Direction, LinkGraph

_LINK_SCORE: Final = 0.5
#: A contradiction in another state is settled.
_OPEN_STATES: Final = (None, "accepted_dual")

#: Gives the typed edges that touch any of these notes.
EdgesTouching: TypeAlias = Callable[[Collection[str]], Awaitable[Sequence[Edge]]]


class Coactivations(Protocol):
    """Counts of notes that were retrieved together."""

    async def coactivated(self, seeds: Sequence[str], namespaces: Sequence[str] | None) -> Mapping[str, int]:
        """How often other notes were; None is any namespace."""
        ...


class Findings(Protocol):
    """What agents found in their tasks."""

    async def findings(self, task_id: str, since: None) -> Sequence[Finding]:
        """All findings of a task."""
        ...


@frozen
class RelationScouts:
    """The relation scouts; they raise what the databases raise."""

    catalogue: Catalogue
    edges_touching: EdgesTouching
    coactivations: Coactivations
    findings: Findings

    def task_context(self) -> Scout:
        """With a task: notes that its findings name, and notes made for it."""
        return Scout("task_context", self.find_of_task, lambda ask: ask.gate.task_id is not None)

    def provenance(self) -> Scout:
        """What seeds were derived from, and what was derived from them."""
        return Scout("provenance", self.find_sources)

    def graph(self) -> Scout:
        """What is linked with seeds, by wiki-links or typed edges, in either direction."""
        return Scout("graph", self.find_neighbours)

    def coactivation(self) -> Scout:
        """What was retrieved together with seeds before."""
        return Scout("coactivation", self.find_companions)

    async def find_of_task(self, ask: Ask) -> Sequence[Candidate]:
        """1.0 each."""
        task_id = ask.gate.task_id
        assert task_id is not None
        named = [
            Candidate(finding.knowledge_id, 1.0, "is named by a finding of the task")
            for finding in await self.findings.findings(task_id, None)
            if finding.knowledge_id is not None
        ]
        made: list[Candidate] = []
        async for some in slices(self.catalogue.serials(), CHEAP_SLICE):
            made += [
                Candidate(entry.note.id, 1.0, "was written for the task")
                for entry in self.catalogue.at_serials(some)
                if entry.note.source == task_id
            ]
        return [*named, *made]

    async def find_sources(self, ask: Ask) -> Sequence[Candidate]:
        """1.0 each."""
        graph = self.catalogue.graph.provenance
        found: list[Candidate] = []
        async for some in slices(ask.seeds):
            for seed in some:
                found += _beside(graph, seed, "outgoing", 1.0, f"is a source of {quote(seed)}")
                found += _beside(graph, seed, "incoming", 1.0, f"was derived from {quote(seed)}")
        return _without_seeds(found, ask)

    async def find_neighbours(self, ask: Ask) -> Sequence[Candidate]:
        """0.5 for a link, its weight for a typed edge, the best per note."""
        graph = self.catalogue.graph.links
        found: list[Candidate] = []
        async for some in slices(ask.seeds):
            for seed in some:
                found += _beside(graph, seed, "both", _LINK_SCORE, f"is linked with {quote(seed)}")
        for edge in await self.edges_touching(ask.seed_ids):
            found += self._ends(edge, ask)
        return _best_per_note(_without_seeds(found, ask))

    def _ends(self, edge: Edge, ask: Ask) -> Iterator[Candidate]:
        for seed_id in {edge.from_id, edge.to_id} & ask.seed_ids:
            seed = self.catalogue.get(seed_id)
            if seed is not None:
                reason = f"has an edge {edge.type!r} with {quote(seed)}"
                yield Candidate(other_end(edge, seed_id), edge.weight, reason)

    async def find_companions(self, ask: Ask) -> Sequence[Candidate]:
        """How often, as score."""
        spaces = None if ask.gate.namespaces is None else sorted(ask.gate.namespaces)
        counts = await self.coactivations.coactivated(sorted(ask.seed_ids), spaces)
        found = [
            Candidate(note_id, count, "was retrieved together with other results before")
            for note_id, count in counts.items()
        ]
        return _without_seeds(found, ask)

    async def find_contradictions(self, ask: Ask) -> list[SurfacedConflict]:
        """Unsettled contradictions of seeds with notes that exist and may be seen, oldest first."""
        return [
            SurfacedConflict(edge.id, edge.from_id, edge.to_id, edge.conflict_state)
            for edge in await self.edges_touching(ask.seed_ids)
            if edge.type == CONTRADICTS
            and edge.conflict_state in _OPEN_STATES
            and self._is_visible(edge.from_id, ask)
            and self._is_visible(edge.to_id, ask)
        ]

    def _is_visible(self, note_id: str, ask: Ask) -> bool:
        entry = self.catalogue.get(note_id)
        return entry is not None and ask.gate.shows(entry)


def _beside(
    graph: LinkGraph, seed: Entry, direction: Direction, score: float, reason: str
) -> Iterator[Candidate]:
    """The direct neighbours."""
    near = graph.reach([seed.note.id], 1, direction)
    return (Candidate(note_id, score, reason) for note_id in near)


def _without_seeds(found: Sequence[Candidate], ask: Ask) -> list[Candidate]:
    return [candidate for candidate in found if candidate.id not in ask.seed_ids]


def _best_per_note(found: Sequence[Candidate]) -> list[Candidate]:
    """The first of the best ones of each note."""
    best: dict[str, Candidate] = {}
    for candidate in found:
        known = best.get(candidate.id)
        if known is None or candidate.score > known.score:
            best[candidate.id] = candidate
    return list(best.values())
