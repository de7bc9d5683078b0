"""The watcher's debounced queue of touched paths and missing notes."""

from __future__ import annotations

import math
from collections.abc import Iterable

from attrs import define, field, frozen

#: Maximum number of debounce periods that a missing note waits while notifications keep arriving.
STORM = 3


@frozen
class TouchedBatch:
    """One batch of touched paths, with the time at which each path was first touched.

    `compare` requests a full comparison with the tree.
    """

    touched: dict[str, float]
    compare: bool


@define
class Pending:
    """The debounced queue of the watcher.

    A touched path waits until no path was touched for `debounce` seconds, but at most twice as long. All
    times are in seconds.

    A missing note waits `debounce` seconds for its file to appear at another path, because a deletion and a
    creation of one id within this time are a rename. If notifications keep arriving, one of them may be about
    the file. The note then also waits for quiet, but at most `STORM` times as long.
    """

    debounce: float
    _touched: dict[str, float] = field(factory=dict)
    _compare: bool = False
    _first: float = math.inf
    _last: float = -math.inf
    #: The time of the last touch. It is kept after the touched paths are processed.
    _heard: float = -math.inf
    _missing: dict[str, float] = field(factory=dict)

    def touch(self, paths: Iterable[str], now: float) -> None:
        """Add touched paths to the queue. They are due after the debounce."""
        for path in paths:
            self._touched.setdefault(path, now)
            self._heard = now
            self._note(now)

    def touch_now(self, paths: Iterable[str], now: float) -> None:
        """Add touched paths to the queue. They are due at once, without debounce."""
        for path in paths:
            self._touched.setdefault(path, now)
            self._heard = now
            self._first = now - 2 * self.debounce

    def compare(self, now: float) -> None:
        """Request a debounced comparison with the whole tree, because the changed paths are unknown."""
        self._compare = True
        self._note(now)

    def compare_now(self, now: float) -> None:
        """Request a comparison with the whole tree. The comparison is due at once."""
        self._compare = True
        self._first = now - 2 * self.debounce

    def miss(self, note_id: str, since: float) -> None:
        """Record that the file of a note is missing."""
        self._missing.setdefault(note_id, since)

    def put_off(self, note_ids: Iterable[str], now: float) -> None:
        """Restart the wait of missing notes whose files were just found at other paths."""
        for note_id in note_ids:
            self._missing[note_id] = now

    def find(self, note_ids: Iterable[str]) -> None:
        """Stop waiting for missing notes that were found or dropped."""
        for note_id in note_ids:
            self._missing.pop(note_id, None)

    @property
    def due(self) -> float:
        """Return the time at which the next entry is due. If the queue is empty, the result is infinity."""
        notices = min(self._first + 2 * self.debounce, max(self._first, self._last) + self.debounce)
        return min(notices, min(map(self._ripens, self._missing.values()), default=math.inf))

    def take(self) -> TouchedBatch:
        """Remove the touched paths from the queue and return them. Missing notes remain in the queue."""
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
