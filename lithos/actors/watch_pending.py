"""What the watcher has noticed and not yet settled: touched paths, missing notes, and since when."""

from __future__ import annotations

import math
from collections.abc import Iterable

from attrs import define, field, frozen

#: So many debounces a missing note may take to turn up while files keep moving.
STORM = 3


@frozen
class Noticed:
    """What is due: touched paths with the time of their first touch, and whether to compare everything."""

    touched: dict[str, float]
    compare: bool


@define
class Pending:
    """Notices wait for `debounce` seconds of quiet, but never longer than twice that; times in seconds.

    A missing note waits as long for its file to turn up elsewhere: deletion and creation of one id
    within the debounce are a renaming. While more is noticed it may be among that: it waits for quiet
    as well, but never longer than `STORM` times the debounce.
    """

    debounce: float
    _touched: dict[str, float] = field(factory=dict)
    _compare: bool = False
    _first: float = math.inf
    _last: float = -math.inf
    #: The last touch, also when it is settled.
    _heard: float = -math.inf
    _missing: dict[str, float] = field(factory=dict)

    def touch(self, paths: Iterable[str], now: float) -> None:
        """Something happened at these paths."""
        for path in paths:
            self._touched.setdefault(path, now)
            self._heard = now
            self._note(now)

    def touch_now(self, paths: Iterable[str], now: float) -> None:
        """Something happened at these paths, and is to be looked at without waiting for quiet."""
        for path in paths:
            self._touched.setdefault(path, now)
            self._heard = now
            self._first = now - 2 * self.debounce

    def compare(self, now: float) -> None:
        """Something happened, and nobody knows where."""
        self._compare = True
        self._note(now)

    def compare_now(self, now: float) -> None:
        """Compare without waiting for quiet."""
        self._compare = True
        self._first = now - 2 * self.debounce

    def miss(self, note_id: str, since: float) -> None:
        """The note's file is gone."""
        self._missing.setdefault(note_id, since)

    def put_off(self, note_ids: Iterable[str], now: float) -> None:
        """These notes were seen elsewhere a moment ago."""
        for note_id in note_ids:
            self._missing[note_id] = now

    def find(self, note_ids: Iterable[str]) -> None:
        """These notes are settled one way or the other."""
        for note_id in note_ids:
            self._missing.pop(note_id, None)

    def misses(self, note_id: str) -> bool:
        """True while the note's file is gone."""
        return note_id in self._missing

    @property
    def due(self) -> float:
        """When something has to be settled; infinite when nothing waits."""
        notices = min(self._first + 2 * self.debounce, max(self._first, self._last) + self.debounce)
        return min(notices, min(map(self._ripens, self._missing.values()), default=math.inf))

    def take(self) -> Noticed:
        """Everything noticed so far."""
        noticed = Noticed(self._touched, self._compare)
        self._touched, self._compare = {}, False
        self._first, self._last = math.inf, -math.inf
        return noticed

    def ripe(self, now: float) -> list[str]:
        """The missing notes that were given time enough to turn up."""
        return [note_id for note_id, since in self._missing.items() if self._ripens(since) <= now]

    def _ripens(self, since: float) -> float:
        quiet = min(self._heard + self.debounce, since + STORM * self.debounce)
        return max(since + self.debounce, quiet)

    def _note(self, now: float) -> None:
        self._first = min(self._first, now)
        self._last = max(self._last, now)
