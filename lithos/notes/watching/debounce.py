"""The watcher's debounced queue of touched paths and missing notes."""

from __future__ import annotations

import math
from collections.abc import Iterable

from attrs import define, field, frozen

#: Maximum debounce periods that a missing note waits while files keep moving.
STORM = 3


@frozen
class TouchedBatch:
    """One batch of the queue: touched paths with the time of their first touch.

    `compare` requests a full comparison of the tree.
    """

    touched: dict[str, float]
    compare: bool


@define
class Pending:
    """A debounced queue.

    An entry waits for `debounce` seconds of quiet, but at most twice as long. Times are in seconds.

    A missing note waits equally long for its file to appear elsewhere, because the deletion and creation of
    one id within the debounce are a rename. While notifications keep arriving, they may include its file, so
    the note waits for quiet too, but at most `STORM` times the debounce.
    """

    debounce: float
    _touched: dict[str, float] = field(factory=dict)
    _compare: bool = False
    _first: float = math.inf
    _last: float = -math.inf
    #: The time of the last touch, even if it was processed already.
    _heard: float = -math.inf
    _missing: dict[str, float] = field(factory=dict)

    def touch(self, paths: Iterable[str], now: float) -> None:
        """Enqueue touched paths, debounced."""
        for path in paths:
            self._touched.setdefault(path, now)
            self._heard = now
            self._note(now)

    def touch_now(self, paths: Iterable[str], now: float) -> None:
        """Enqueue touched paths that are due at once, without debounce."""
        for path in paths:
            self._touched.setdefault(path, now)
            self._heard = now
            self._first = now - 2 * self.debounce

    def compare(self, now: float) -> None:
        """Request a debounced comparison of the whole tree, because the changed paths are unknown."""
        self._compare = True
        self._note(now)

    def compare_now(self, now: float) -> None:
        """Request a comparison of the whole tree that is due at once."""
        self._compare = True
        self._first = now - 2 * self.debounce

    def miss(self, note_id: str, since: float) -> None:
        """Record a note as missing, because its file is gone."""
        self._missing.setdefault(note_id, since)

    def put_off(self, note_ids: Iterable[str], now: float) -> None:
        """Restart the wait of missing notes whose files were just seen elsewhere."""
        for note_id in note_ids:
            self._missing[note_id] = now

    def find(self, note_ids: Iterable[str]) -> None:
        """Forget missing notes that were found or dropped."""
        for note_id in note_ids:
            self._missing.pop(note_id, None)

    @property
    def due(self) -> float:
        """Return when the next entry is due, or infinity if the queue is empty."""
        notices = min(self._first + 2 * self.debounce, max(self._first, self._last) + self.debounce)
        return min(notices, min(map(self._ripens, self._missing.values()), default=math.inf))

    def take(self) -> TouchedBatch:
        """Drain the queue of touched paths. Missing notes stay in the queue."""
        noticed = TouchedBatch(self._touched, self._compare)
        self._touched, self._compare = {}, False
        self._first, self._last = math.inf, -math.inf
        return noticed

    def ripe(self, now: float) -> list[str]:
        """Return the missing notes whose wait is over."""
        return [note_id for note_id, since in self._missing.items() if self._ripens(since) <= now]

    def _ripens(self, since: float) -> float:
        quiet = min(self._heard + self.debounce, since + STORM * self.debounce)
        return max(since + self.debounce, quiet)

    def _note(self, now: float) -> None:
        self._first = min(self._first, now)
        self._last = max(self._last, now)
