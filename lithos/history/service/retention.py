"""Retention of `history.db`: delete versions in the background if they are too old or exceed the limit.

A step deletes a few hundred rows in one commit. Then it pauses four times as long. Reads are not affected: a
reader has its bytes before they are deleted, and the base of a delta is never deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

import trio
from attrs import define

from lithos.history.rows.store import HistoryFailed, HistoryStore
from lithos.kernel.actors.threads import Blocking
from lithos.kernel.log import get_logger
from lithos.notes.model.versions import (
    MOST_VERSIONS,
    VersionLimits,
    before,
    believe_order,
    cuts,
    surplus_versions,
)

log = get_logger("lithos.history")

#: Seconds before the first run, and between two runs.
FIRST, INTERVAL = 30.0, 3_600.0
#: Number of rows deleted per step. A step keeps the writing thread busy for about 10 ms.
STEP: Final = 200
#: Pause after a step: factor of the step's duration, and minimum in seconds.
PAUSE_TIMES, PAUSE_LEAST = 4.0, 0.05


@define(eq=False)
class HistoryUpkeep:
    """Deletes old versions from the store. `writing` is the only thread that writes to the store."""

    _store: HistoryStore
    _writing: Blocking
    _reading: Blocking
    _clock: Callable[[], datetime]
    _limits: VersionLimits

    async def run(self) -> None:
        """Delete expired versions periodically until cancelled."""
        await trio.sleep(FIRST)
        while True:
            try:
                dropped = await self.look()
            except HistoryFailed as failure:
                log.error("old versions not deleted", reason=failure.message)
            else:
                if dropped:
                    log.info("old versions deleted", rows=dropped)
            await trio.sleep(INTERVAL)

    async def look(self) -> int:
        """Delete every expired row. Return the number of rows. Raises `HistoryFailed`."""
        now, dropped = self._clock(), 0
        notes = await self._reading.run(partial(self._crowded, now))
        firsts = await self._reading.run(partial(self._firsts, now)) if notes else []
        for note in notes:
            places = await self._reading.run(partial(self._surplus, note, now, firsts))
            for start in range(0, len(places), STEP):
                dropped += await self._drop(places[start : start + STEP])
        return dropped

    def _crowded(self, now: datetime) -> list[int]:
        most = self._limits.keep_versions or MOST_VERSIONS - 2
        return self._store.crowded(more_than=most + 2, older_than=before(now, self._limits.keep_days))

    def _firsts(self, now: datetime) -> list[tuple[datetime, int]]:
        found = [(moment, self._store.first_since(moment, now)) for moment in cuts(now, self._limits)]
        return [(moment, place) for moment, place in found if place is not None]

    def _surplus(self, note: int, now: datetime, firsts: list[tuple[datetime, int]]) -> list[int]:
        rows = believe_order(self._store.versions_of(note), firsts)
        return surplus_versions(rows, now, self._limits)

    async def _drop(self, places: list[int]) -> int:
        began = trio.current_time()
        dropped = await self._writing.run(lambda: self._store.drop(places))
        await trio.sleep(max(PAUSE_LEAST, PAUSE_TIMES * (trio.current_time() - began)))
        return dropped
