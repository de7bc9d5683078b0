"""Scouts over the indexes (semantic, lexical) and the catalogue (names, tags, expiry, sources); the team.

The team of all scouts is in the order of the spec's table.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple, TypeAlias

import trio
from attrs import define, frozen

from lithos.actors.blocking import slices
from lithos.actors.indexing.semantic import SemanticBackend, SemanticUnavailable
from lithos.catalogue.catalogue import Catalogue
from lithos.core.learning.memory import SurfacedConflict
from lithos.core.learning.ranking import Candidate
from lithos.core.notes.paths import host_of, slug_of
from lithos.core.text.query import plain_words
from lithos.services.retrieve.scouts import CHEAP_SLICE, Ask, RelationScouts, Scout
from lithos.stores.indexes.chunk_rows import VectorHit
from lithos.stores.indexes.fulltext import FulltextIndex

#: Oversampling: how many results are requested per result wanted.
GENEROSITY: Final = 3
#: Reasons of the scouts over the indexes.
NEAR: Final = "is close in meaning"
MATCHING: Final = "matches the words of the query"


class _Found(NamedTuple):
    """One hit of an index; `serial` is the note's number there."""

    serial: int
    score: float
    chunk: int | None = None


_Hit: TypeAlias = tuple[int, float] | _Found


def _as_found(hit: VectorHit) -> _Found:
    return _Found(hit.serial, hit.similarity, hit.chunk)


@define(eq=False)
class SearchScouts:
    """The scouts over the search indexes; both raise what their index raises."""

    _catalogue: Catalogue
    _fulltext: FulltextIndex
    _semantic: SemanticBackend
    _threshold: float

    async def find_by_meaning(self, ask: Ask) -> Sequence[Candidate]:
        """The nearest `limit` notes that pass, of 3 x `limit` or as many as it takes.

        Nothing while not every note has a vector: an answer from some of them would be silently wrong.
        """
        if not ask.query.strip():
            return ()
        if ask.admitted is not None:
            serials = [entry.serial for entry in ask.admitted]
            among = self._semantic.ask(ask.query, ask.limit, self._threshold, serials)
            self._require_all()
            return self._candidates(ask, map(_as_found, await among.hits()), NEAR)

        async def search(asked: int) -> list[_Found]:
            looking = self._semantic.ask(ask.query, asked, self._threshold)
            self._require_all()
            return list(map(_as_found, await looking.hits()))

        return await self._widen(search, ask, ask.limit, NEAR)

    def _require_all(self) -> None:
        if not self._semantic.is_answering:
            raise SemanticUnavailable("the semantic index is still being built")

    async def find_by_words(self, ask: Ask) -> Sequence[Candidate]:
        """The best 3 x `limit` notes that pass, by BM25; nothing in the query is syntax."""
        node = plain_words(ask.words)
        if node is None:
            return ()

        async def search(asked: int) -> Sequence[tuple[int, float]]:
            return self._fulltext.search(node, asked, ask.gate.filters)

        return await self._widen(search, ask, GENEROSITY * ask.limit, MATCHING)

    async def _widen(
        self, search: Callable[[int], Awaitable[Sequence[_Hit]]], ask: Ask, wanted: int, reason: str
    ) -> list[Candidate]:
        """Widen the query until enough candidates pass the gate or there are no more (post-filtering)."""
        allowed, asked = ask.admitted_serials, GENEROSITY * ask.limit
        if allowed is not None:
            wanted = min(wanted, len(allowed))
        while wanted:
            hits = await search(asked)
            likely = hits if allowed is None else [hit for hit in hits if hit[0] in allowed]
            passing: list[Candidate] = []
            async for some in slices(likely):
                passing += self._candidates(ask, itertools.starmap(_Found, some), reason)
            if len(passing) >= wanted or len(hits) < asked:
                return passing[:wanted]
            asked *= 4
            await trio.lowlevel.checkpoint()
        return []

    def _candidates(self, ask: Ask, found: Iterable[_Found], reason: str) -> list[Candidate]:
        entries = ((hit, self._catalogue.at_serial(hit.serial)) for hit in found)
        return [
            Candidate(entry.note.id, hit.score, reason, hit.chunk)
            for hit, entry in entries
            if entry is not None and ask.gate.passes(entry)
        ]


#: Characters of an id that identify a note well enough.
SHORTEST_PREFIX: Final = 6
#: Words by which a query asks for what may have to be looked up again.
FRESHNESS_WORDS: Final = frozenset(("update", "refresh", "recheck", "verify", "latest"))
_WORD: Final = re.compile(r"\w+")
_STALE: Final = 1.0
_FRESH: Final = 0.5


@define(eq=False)
class NameScouts:
    """The scouts over the catalogue alone; none of them can fail."""

    _catalogue: Catalogue

    async def find_by_name(self, ask: Ask) -> Sequence[Candidate]:
        """The note the query names as a wiki-link would, by its slug or the beginning of its id: 1.0."""
        name = ask.words.strip()
        if not name:
            return ()
        linked = self._catalogue.graph.resolve(name)
        owner = self._catalogue.slugs.owner(slug_of(name, ""))
        named = [note_id for note_id in (linked, owner) if note_id is not None]
        found = [Candidate(note_id, 1.0, "is named by the query") for note_id in named]
        starting = await self._ids_starting(name)
        return [*found, *(Candidate(note_id, 1.0, "has the id of the query") for note_id in starting)]

    async def _ids_starting(self, text: str) -> list[str]:
        # Ids hold no blanks, so most queries need not be compared with every one of them.
        prefix = text.lower()
        if len(prefix) < SHORTEST_PREFIX or len(prefix.split()) > 1:
            return []
        found: list[str] = []
        async for some in slices(list(self._catalogue.may_begin(prefix)), CHEAP_SLICE):
            found += [entry.note.id for entry in some if entry.note.id.lower().startswith(prefix)]
        return found

    async def find_newest(self, ask: Ask) -> Sequence[Candidate]:
        """The newest notes with the tags or path, at most 3 x `limit`: 1, 1/2, 1/3 …, among equals by id."""
        admitted = ask.admitted or ()
        newest = nsmallest(
            GENEROSITY * ask.limit,
            admitted,
            key=lambda entry: (-entry.note.updated_at.timestamp(), entry.note.id),
        )
        return [
            Candidate(entry.note.id, 1 / (1 + place), "is new among those with the tags or path")
            for place, entry in enumerate(newest)
        ]

    async def find_expiring(self, ask: Ask) -> Sequence[Candidate]:
        """Notes that expire: 1.0 for stale ones, 0.5 for others."""
        found: list[Candidate] = []
        async for some in slices(self._catalogue.facets.expiring(), CHEAP_SLICE):
            found += [
                Candidate(entry.note.id, _STALE, "has expired and may need an update")
                if entry.note.is_stale(ask.now)
                else Candidate(entry.note.id, _FRESH, "has an expiry and is still fresh")
                for entry in self._catalogue.at_serials(some)
            ]
        return found

    async def find_of_same_host(self, ask: Ask) -> Sequence[Candidate]:
        """1.0 for every note whose source is on the web site of a seed's source."""
        found: list[Candidate] = []
        for host in {host_of(seed.note.source_url) for seed in ask.seeds if seed.note.source_url}:
            reason = f"comes from {host} as well"
            async for some in slices(list(self._catalogue.sites.of(host)), CHEAP_SLICE):
                found += [Candidate(note_id, 1.0, reason) for note_id in some if note_id not in ask.seed_ids]
        return found


def _has_tags_or_path(ask: Ask) -> bool:
    return bool(ask.gate.filters.tags) or ask.gate.filters.path_prefix is not None


def _asks_for_fresh(ask: Ask) -> bool:
    return not FRESHNESS_WORDS.isdisjoint(_WORD.findall(ask.words.lower()))


@frozen
class Team:
    """The scouts of the first phase, those of the second (they start from seeds), and the conflict query."""

    first: tuple[Scout, ...]
    second: tuple[Scout, ...]
    find_contradictions: Callable[[Ask], Awaitable[Sequence[SurfacedConflict]]]


def make_team(searches: SearchScouts, names: NameScouts, relations: RelationScouts) -> Team:
    """All scouts, by phase."""
    return Team(
        first=(
            Scout("vector", searches.find_by_meaning),
            Scout("lexical", searches.find_by_words),
            Scout("exact_alias", names.find_by_name),
            Scout("tags_recency", names.find_newest, _has_tags_or_path),
            Scout("freshness", names.find_expiring, _asks_for_fresh),
            Scout("task_context", relations.find_of_task, lambda ask: ask.gate.task_id is not None),
        ),
        second=(
            Scout("provenance", relations.find_sources),
            Scout("graph", relations.find_neighbours),
            Scout("coactivation", relations.find_companions),
            Scout("source_url", names.find_of_same_host),
        ),
        find_contradictions=relations.find_contradictions,
    )
