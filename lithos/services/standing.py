"""Where found notes stand: what scouts say of them, their type, their salience and their use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

import trio
from attrs import define, frozen

from lithos.actors.blocking import Blocking
from lithos.actors.catalogue import Catalogue, Entry
from lithos.core.memory import NodeStats
from lithos.core.rerank import Candidate, Pooled, Ranked, RerankWeights, Traits, final_score, merge, rank
from lithos.core.salience import UsageSettings, usage_score
from lithos.services.slices import slices
from lithos.stores.sqlite import DatabaseFailed
from lithos.telemetry import get_logger

log = get_logger("lithos.retrieve")

#: Up to so many finds are worked on in one turn of the event loop, some two milliseconds.
INLINE: Final = 300
STATS_DEADLINE: Final = 5.0


class Statistics(Protocol):
    """How notes have fared."""

    async def stats(self, node_ids: Iterable[str]) -> Mapping[str, NodeStats]:
        """The stored rows of these notes."""
        ...


@frozen
class Standing:
    """Notes in final order and their traits, by id; not `complete` when no statistics could be read."""

    ranked: Sequence[Ranked]
    traits: Mapping[str, Traits]
    complete: bool


@define
class Ranking:
    """Merges and reranks; much work leaves the event loop."""

    _catalogue: Catalogue
    _statistics: Statistics
    _weights: RerankWeights
    _usage: UsageSettings
    _working: Blocking

    async def merge(self, found: Mapping[str, Sequence[Candidate]]) -> list[Pooled]:
        """The pool, best first."""
        if sum(map(len, found.values())) <= INLINE:
            return merge(found)
        return await self._working.run(lambda: merge(found))

    async def rank(self, pool: Sequence[Pooled], now: datetime) -> Standing:
        """The notes of the pool that still exist, best first."""
        entries: dict[str, Entry] = {}
        async for some in slices(pool):
            known = ((note.id, self._catalogue.get(note.id)) for note in some)
            entries |= {note_id: entry for note_id, entry in known if entry is not None}
        stats = await self._read_stats(entries)
        work = self._scoring(pool, entries, stats or {}, now)
        ranked, traits = work() if len(pool) <= INLINE else await self._working.run(work)
        return Standing(ranked, traits, complete=stats is not None)

    async def _read_stats(self, entries: Mapping[str, Entry]) -> Mapping[str, NodeStats] | None:
        """None when they cannot be read: then every note counts as new."""
        if not entries:
            return {}
        try:
            with trio.fail_after(STATS_DEADLINE):
                return await self._statistics.stats(entries)
        except (DatabaseFailed, OSError, trio.TooSlowError) as failure:
            log.warning("statistics not read", reason=repr(failure))
            return None

    def _scoring(
        self,
        pool: Sequence[Pooled],
        entries: Mapping[str, Entry],
        stats: Mapping[str, NodeStats],
        now: datetime,
    ) -> Callable[[], tuple[list[Ranked], dict[str, Traits]]]:
        def trait(entry: Entry) -> Traits:
            of_note = stats.get(entry.note.id) or NodeStats(node_id=entry.note.id)
            return Traits(
                note_type=entry.note.note_type,
                salience=of_note.salience,
                usage=usage_score(of_note, now, self._usage),
            )

        def work() -> tuple[list[Ranked], dict[str, Traits]]:
            traits = {note_id: trait(entry) for note_id, entry in entries.items()}
            scored = [
                Ranked(note, final_score(note, traits[note.id], self._weights))
                for note in pool
                if note.id in traits
            ]
            return rank(scored), traits

        return work
