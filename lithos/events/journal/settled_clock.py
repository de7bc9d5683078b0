"""The retention clock."""

from __future__ import annotations

from datetime import datetime, timedelta

import trio

from lithos.kernel.log import get_logger
from lithos.kernel.parts import Clock
from lithos.kernel.values.times import format_time, settled_time


class SettledClock:
    """Retention clock. A single wrong reading of the system clock does not cause any deletion.

    Call the clock only on the event loop. It starts at the time that `CoordinationStore` stored in an earlier
    run.
    """

    def __init__(self, clock: Clock, last: datetime | None) -> None:
        self._clock = clock
        self._last = clock() if last is None else last
        self._since = trio.current_time()
        self._is_ahead = False

    @property
    def reached(self) -> datetime:
        """Return the latest accepted time.

        No row that is stored now is older, whatever time the system clock shows.
        """
        return self._last

    def __call__(self) -> datetime:
        """Return the accepted time. It does not advance while the system clock is behind it."""
        now, at = self._clock(), trio.current_time()
        settled = settled_time(self._last, timedelta(seconds=at - self._since), now)
        if settled < now and not self._is_ahead:
            get_logger("lithos.app").warning(
                "clock far ahead of last seen time, old data kept until the gap has passed",
                clock=format_time(now),
                last_seen=format_time(self._last),
            )
        self._is_ahead = settled < now
        if settled > self._last:
            self._last, self._since = settled, at
        return settled
