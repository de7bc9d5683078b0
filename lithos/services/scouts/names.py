"""Scouts that look at what notes say of themselves: names, tags, expiry, sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from heapq import nsmallest
from typing import Final

from lithos.actors.catalogue import Catalogue, Entry
from lithos.core.paths import slug_of
from lithos.core.rerank import Candidate
from lithos.core.urls import host_of
from lithos.services.scouts.contract import CHEAP_SLICE, Ask, Scout
from lithos.services.scouts.searches import GENEROSITY
from lithos.services.slices import slices

#: Characters of an id that identify a note well enough.
SHORTEST_PREFIX: Final = 6
#: Words by which a query asks for what may have to be looked up again.
FRESHNESS_WORDS: Final = frozenset(("update", "refresh", "recheck", "verify", "latest"))
_WORD: Final = re.compile(r"\w+")
_STALE: Final = 1.0
_FRESH: Final = 0.5


class NameScouts:
    """They read the catalogue only, and none of them can fail."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def exact_alias(self) -> Scout:
        """The note the query names: as a wiki-link would, by the beginning of its id, by its slug."""
        return Scout("exact_alias", self.find_by_name)

    def tags_recency(self) -> Scout:
        """With tags or a path prefix: the newest notes that have them."""
        return Scout("tags_recency", self.find_newest, _has_tags_or_path)

    def freshness(self) -> Scout:
        """When the query asks for fresh knowledge: notes that expire."""
        return Scout("freshness", self.find_expiring, _asks_for_fresh)

    def source_url(self) -> Scout:
        """Notes from the web sites that seeds are from."""
        return Scout("source_url", self.find_of_same_host)

    async def find_by_name(self, ask: Ask) -> Sequence[Candidate]:
        """Score 1.0 each; nothing for a blank query."""
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
        found = await self._select(lambda entry: entry.note.id.lower().startswith(prefix))
        return [entry.note.id for entry in found]

    async def find_newest(self, ask: Ask) -> Sequence[Candidate]:
        """At most 3 x `limit`, scored 1, 1/2, 1/3 …; among equally new ones the id decides."""
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
        """1.0 for stale notes, 0.5 for others with an expiry."""
        found = await self._select(lambda entry: entry.note.expires_at is not None)
        return [
            Candidate(entry.note.id, _STALE, "has expired and may need an update")
            if entry.note.is_stale(ask.now)
            else Candidate(entry.note.id, _FRESH, "has an expiry and is still fresh")
            for entry in found
        ]

    async def find_of_same_host(self, ask: Ask) -> Sequence[Candidate]:
        """1.0 for every note whose source has the host of a seed's source."""
        found: list[Candidate] = []
        for host in {host_of(seed.note.source_url) for seed in ask.seeds if seed.note.source_url}:
            reason = f"comes from {host} as well"
            async for some in slices(self._catalogue.sites.at(host), CHEAP_SLICE):
                found += [Candidate(note_id, 1.0, reason) for note_id in some if note_id not in ask.seed_ids]
        return found

    async def _select(self, holds: Callable[[Entry], bool]) -> list[Entry]:
        found: list[Entry] = []
        async for some in slices(list(self._catalogue), CHEAP_SLICE):
            found += filter(holds, some)
        return found


def _has_tags_or_path(ask: Ask) -> bool:
    return bool(ask.gate.filters.tags) or ask.gate.filters.path_prefix is not None


def _asks_for_fresh(ask: Ask) -> bool:
    return not FRESHNESS_WORDS.isdisjoint(_WORD.findall(ask.words.lower()))
