"""The notes with an accurate vector of their current text, and whether they are enough for queries.

The vectors are enough when 99 % of the chunks have one, and until fewer than 97 % do (hysteresis): a mixture
ranks worse than either model alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from attrs import frozen

#: Shares of the chunks at which queries change to the accurate vectors, and back.
ENOUGH: Final = 0.99
TOO_FEW: Final = 0.97


class NoteText(NamedTuple):
    """A note in the static index: `stamp` is that of its file, `digest` of what is embedded of it."""

    serial: int
    stamp: int
    chunks: int
    digest: int | None = None


class _Lacking(NamedTuple):
    #: None for a deleted note, whose vectors must still be removed.
    stamp: int | None
    chunks: int


@frozen
class Progress:
    """The tier that answers, and how many chunks of how many have an accurate vector."""

    tier: str
    done: int
    total: int


class AccurateCoverage:
    """Notes that lack accurate vectors, in the order of work; methods may be called from any thread.

    `total` gives the chunks of all notes, `held` the digest of the text whose accurate vectors there are.
    """

    def __init__(self, total: Callable[[], int], held: Callable[[int], int | None]) -> None:
        self._total = total
        self._held = held
        self._lock = threading.Lock()
        #: By serial. Notes that are not here are current.
        self._lacking: dict[int, _Lacking] = {}
        #: A stack: the newest note is the last.
        self._todo: dict[int, None] = {}
        #: Stamps of the files whose text the accurate vectors are of.
        self._stamps: dict[int, int] = {}
        self._missing = 0
        self._is_planned = False
        #: Whether queries go to the accurate vectors.
        self.is_enough = False

    def plan(self, notes: Sequence[NoteText], stamps: Mapping[int, int], surplus: Iterable[int]) -> None:
        """Begin: `notes` are all, the newest last, `stamps` those whose vectors were kept on disk.

        `surplus` are vectors of deleted notes. Changes that arrive in the meantime count as newer.
        """
        with self._lock:
            changed, self._todo = self._todo, {}
            for note in notes:
                if note.serial in self._lacking or note.serial in self._stamps:
                    continue
                if stamps.get(note.serial) == note.stamp:
                    self._stamps[note.serial] = note.stamp
                else:
                    self._mark(note.serial, note.stamp, note.chunks)
            for serial in surplus:
                if serial not in self._lacking and serial not in self._stamps:
                    self._mark(serial, None, 0)
            for serial in changed:
                self._todo.pop(serial, None)
                self._todo[serial] = None
            self._is_planned = True
            self._judge()

    def change(self, notes: Sequence[NoteText], removals: Sequence[int]) -> None:
        """Record notes with static vectors of another text, or deleted ones; call it before any query
        sees them.
        """
        with self._lock:
            for serial in removals:
                self._mark(serial, None, 0)
            for note in notes:
                if note.digest is not None and self._held(note.serial) == note.digest:
                    self._clear(note.serial, note.stamp)
                else:
                    self._mark(note.serial, note.stamp, note.chunks)
            self._judge()

    def _mark(self, serial: int, stamp: int | None, chunks: int) -> None:
        before = self._lacking.get(serial)
        self._missing += chunks - (before.chunks if before else 0)
        self._lacking[serial] = _Lacking(stamp, chunks)
        self._stamps.pop(serial, None)
        self._todo.pop(serial, None)
        self._todo[serial] = None

    def _clear(self, serial: int, stamp: int | None) -> None:
        before = self._lacking.pop(serial, None)
        self._missing -= before.chunks if before else 0
        self._todo.pop(serial, None)
        if stamp is not None:
            self._stamps[serial] = stamp

    def take(self, chunks: int) -> list[int]:
        """Take the next notes, newest first: about `chunks` chunks, at least one note if there is any."""
        taken: list[int] = []
        with self._lock:
            while self._todo and chunks > 0:
                serial, _ = self._todo.popitem()
                taken.append(serial)
                chunks -= max(1, self._lacking[serial].chunks)
        return taken

    def filled(self, serial: int, stamp: int | None) -> None:
        """Record that a note has accurate vectors of the text of this stamp; None: it is deleted.

        A note that was changed in the meantime stays lacking.
        """
        with self._lock:
            lacking = self._lacking.get(serial)
            if lacking is not None and lacking.stamp == stamp:
                self._clear(serial, stamp)
            self._judge()

    def retry(self) -> None:
        """Put all that is lacking up for work again."""
        with self._lock:
            for serial in self._lacking:
                self._todo.setdefault(serial)

    def _judge(self) -> None:
        """Switch between the tiers."""
        if not self._is_planned:
            return
        total = self._total()
        done = total - self._missing
        self.is_enough = total > 0 and done >= (TOO_FEW if self.is_enough else ENOUGH) * total

    def stale(self) -> frozenset[int]:
        """Return notes whose accurate vectors must not be used: they are missing, or of another text."""
        with self._lock:
            return frozenset(self._lacking)

    def stamps(self) -> dict[int, int]:
        """A copy of the stamps of the files whose text the accurate vectors are of."""
        with self._lock:
            return dict(self._stamps)

    @property
    def is_drained(self) -> bool:
        """Whether there is nothing to do now."""
        return not self._todo

    @property
    def is_complete(self) -> bool:
        """Whether every note has its vectors."""
        return self._is_planned and not self._lacking

    def counts(self) -> tuple[int, int]:
        """Chunks that have an accurate vector, and all."""
        total = self._total()
        return (max(0, total - self._missing) if self._is_planned else 0), total
