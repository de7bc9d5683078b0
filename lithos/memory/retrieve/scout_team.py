"""The team of all scouts, and the scouts that use only the catalogue (names, tags, expiry, sources).

The team lists all scouts in the order of the table in the specification.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from heapq import nsmallest
from typing import Final

from attrs import define, frozen

from lithos.kernel.actors.threads import slices
from lithos.kernel.values.ids import SHORTEST_PREFIX
from lithos.memory.model.memory import SurfacedConflict
from lithos.memory.retrieve.scouts import CHEAP_SLICE, RelationScouts, Scout, ScoutRequest
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.paths import host_of, slug_of
from lithos.search.ranking.ranking import ScoutHit

#: Factor for oversampling: number of results to request from a scout per wanted result.
GENEROSITY: Final = 3
#: Reasons of the scouts that hybrid search replaces.
NEAR: Final = "is close in meaning"
MATCHING: Final = "matches the words of the query"


#: Words of a query that ask for information which may need an update.
FRESHNESS_WORDS: Final = frozenset(("update", "refresh", "recheck", "verify", "latest"))
_WORD: Final = re.compile(r"\w+")
_STALE: Final = 1.0
_FRESH: Final = 0.5


@define(eq=False)
class NameScouts:
    """Scouts that use only the catalogue. They never fail."""

    _catalogue: Catalogue

    async def find_by_name(self, ask: ScoutRequest) -> Sequence[ScoutHit]:
        """Return the notes that the query names like a wiki-link, by slug, or by id prefix.

        Each note scores 1.0.
        """
        name = ask.words.strip()
        if not name:
            return ()
        linked = self._catalogue.graph.resolve(name)
        owner = self._catalogue.slugs.owner(slug_of(name, ""))
        named = [note_id for note_id in (linked, owner) if note_id is not None]
        found = [ScoutHit(note_id, 1.0, "is named by the query") for note_id in named]
        starting = await self._ids_starting(name)
        return [*found, *(ScoutHit(note_id, 1.0, "has the id of the query") for note_id in starting)]

    async def _ids_starting(self, text: str) -> list[str]:
        # Ids contain no spaces, so most queries need not be compared with every id.
        prefix = text.lower()
        if len(prefix) < SHORTEST_PREFIX or len(prefix.split()) > 1:
            return []
        found: list[str] = []
        async for some in slices(list(self._catalogue.may_begin(prefix)), CHEAP_SLICE):
            found += [entry.note.id for entry in some if entry.note.id.lower().startswith(prefix)]
        return found

    async def find_newest(self, ask: ScoutRequest) -> Sequence[ScoutHit]:
        """Return the newest notes with these tags or this path, at most 3 x `limit` notes.

        The scores are 1, 1/2, 1/3 …. Notes of the same time are sorted by id.
        """
        admitted = ask.admitted or ()
        newest = nsmallest(
            GENEROSITY * ask.limit,
            admitted,
            key=lambda entry: (-entry.note.updated_at.timestamp(), entry.note.id),
        )
        return [
            ScoutHit(entry.note.id, 1 / (1 + place), "is new among those with the tags or path")
            for place, entry in enumerate(newest)
        ]

    async def find_expiring(self, ask: ScoutRequest) -> Sequence[ScoutHit]:
        """Return the notes with an expiry time. Stale notes score 1.0, and all others 0.5."""
        found: list[ScoutHit] = []
        async for some in slices(self._catalogue.facets.expiring(), CHEAP_SLICE):
            found += [
                ScoutHit(entry.note.id, _STALE, "has expired and may need an update")
                if entry.note.is_stale(ask.now)
                else ScoutHit(entry.note.id, _FRESH, "has an expiry and is still fresh")
                for entry in self._catalogue.at_serials(some)
            ]
        return found

    async def find_of_same_host(self, ask: ScoutRequest) -> Sequence[ScoutHit]:
        """Return the notes with a source on the same web site as the source of a seed.

        Each note scores 1.0.
        """
        found: list[ScoutHit] = []
        for host in {host_of(seed.note.source_url) for seed in ask.seeds if seed.note.source_url}:
            reason = f"comes from {host} as well"
            async for some in slices(list(self._catalogue.sites.of(host)), CHEAP_SLICE):
                found += [ScoutHit(note_id, 1.0, reason) for note_id in some if note_id not in ask.seed_ids]
        return found


def _has_tags_or_path(ask: ScoutRequest) -> bool:
    return bool(ask.gate.filters.tags) or ask.gate.filters.path_prefix is not None


def _asks_for_fresh(ask: ScoutRequest) -> bool:
    return not FRESHNESS_WORDS.isdisjoint(_WORD.findall(ask.words.lower()))


@frozen
class Team:
    """The scouts of the first phase, the scouts of the second phase, and the conflict query.

    The second phase starts from seeds.
    """

    first: tuple[Scout, ...]
    second: tuple[Scout, ...]
    find_contradictions: Callable[[ScoutRequest], Awaitable[Sequence[SurfacedConflict]]]


def make_team(names: NameScouts, relations: RelationScouts) -> Team:
    """Return the team with all scouts by phase."""
    return Team(
        first=(
            Scout("exact_alias", names.find_by_name),
            Scout("tags_recency", names.find_newest, _has_tags_or_path),
            Scout("freshness", names.find_expiring, _asks_for_fresh),
            Scout("task_context", relations.find_of_task, lambda ask: ask.gate.task_id is not None),
        ),
        second=(
            Scout("provenance", relations.find_sources),
            Scout("graph", relations.find_neighbours),
            Scout("source_url", names.find_of_same_host),
        ),
        find_contradictions=relations.find_contradictions,
    )
