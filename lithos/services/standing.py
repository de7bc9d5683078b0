"""Where found notes stand: what scouts say of them, their type, their salience and their use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

import trio
from attrs import define, frozen

from lithos.actors.blocking import Blocking
from lithos.actors.catalogue import Catalogue
from lithos.core.memory import INITIAL_SALIENCE, NodeStats
from lithos.core.rerank import (
    Candidate,
    Ranked,
    RerankWeights,
    Scaled,
    Traits,
    final_score,
    ground_scores,
    merge,
    promising,
    rank,
)
from lithos.core.salience import UsageSettings, usage_score
from lithos.services.slices import slices
from lithos.stores.sqlite import DatabaseFailed
from lithos.telemetry import get_logger

log = get_logger("lithos.retrieve")

#: Up to so many finds are merged on the event loop, which takes a millisecond or two.
INLINE: Final = 3_000
#: Notes that are scored in one turn of the event loop.
SCORED: Final = 1_000
STATS_DEADLINE: Final = 5.0
#: What counts of a note that was never retrieved, besides its type.
_UNUSED: Final = Traits(note_type="other", salience=INITIAL_SALIENCE, usage=0.0)


class Statistics(Protocol):
    """How notes have fared."""

    async def stats(self, node_ids: Iterable[str]) -> Mapping[str, NodeStats]:
        """The stored rows of these notes."""
        ...


@frozen
class Standing:
    """The best notes in final order; not `complete` when no statistics could be read."""

    ranked: Sequence[Ranked]
    complete: bool


@define
class Ranking:
    """Merges what was found and puts it into order; no turn of the event loop is long."""

    _catalogue: Catalogue
    _statistics: Statistics
    _weights: RerankWeights
    _usage: UsageSettings
    _working: Blocking

    async def merge(self, found: Mapping[str, Sequence[Candidate]]) -> Mapping[str, Scaled]:
        """The pool."""
        if sum(map(len, found.values())) <= INLINE:
            return merge(found)
        return await self._working.run(lambda: merge(found))

    async def rank(self, pool: Mapping[str, Scaled], most: int, now: datetime) -> Standing:
        """The `most` best notes of the pool that still exist."""
        stats = await self._read_stats(pool)
        known, grounds = stats or {}, await self._ground(pool)
        await trio.lowlevel.checkpoint()
        saliences = {note_id: row.salience for note_id, row in known.items()}
        chosen = promising(grounds, saliences, _UNUSED, self._weights, most)
        scored: list[Ranked] = []
        async for some in slices(chosen, SCORED):
            for note_id in some:
                entry = self._catalogue.get(note_id)
                if entry is not None:
                    traits = self._traits(entry.note.note_type, known.get(note_id), now)
                    score = final_score(grounds[note_id], traits, self._weights)
                    scored.append(Ranked(note_id, score, pool[note_id], traits))
        return Standing(rank(scored, most), complete=stats is not None)

    async def _ground(self, pool: Mapping[str, Scaled]) -> dict[str, float]:
        """What is certain of the notes that still exist."""
        get = self._catalogue.get
        grounds: dict[str, float] = {}
        async for some in slices(list(pool), SCORED):
            types = {note_id: entry.note.note_type for note_id in some if (entry := get(note_id)) is not None}
            grounds |= ground_scores(pool, types, self._weights)
        return grounds

    def _traits(self, note_type: str, stats: NodeStats | None, now: datetime) -> Traits:
        if stats is None:
            return Traits(note_type=note_type, salience=_UNUSED.salience, usage=_UNUSED.usage)
        usage = usage_score(stats, now, self._usage)
        return Traits(note_type=note_type, salience=stats.salience, usage=usage)

    async def _read_stats(self, note_ids: Collection[str]) -> Mapping[str, NodeStats] | None:
        """None when they cannot be read: then every note counts as new."""
        if not note_ids:
            return {}
        try:
            with trio.fail_after(STATS_DEADLINE):
                return await self._statistics.stats(note_ids)
        except (DatabaseFailed, OSError, trio.TooSlowError) as failure:
            log.warning("statistics not read", reason=repr(failure))
            return None
