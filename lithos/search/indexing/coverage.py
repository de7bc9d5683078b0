"""Coverage: which notes have a current accurate vector, and whether there are enough of these for queries.

Queries use the accurate vectors once 99 % of the chunks have a vector. They stop using them when fewer than
97 % have one (hysteresis), because a mixture ranks worse than either model alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from attrs import frozen

#: Shares of chunks with accurate vectors. At the first share, queries switch to the accurate tier. Below the
#: second share, they switch back.
ENOUGH: Final = 0.99
TOO_FEW: Final = 0.97


class NoteText(NamedTuple):
    """A note in the static index. `stamp` identifies its file, `digest` its embedded texts."""

    serial: int
    stamp: int
    chunks: int
    digest: int | None = None


class _Lacking(NamedTuple):
    #: None for a deleted note whose vectors must still be removed.
    stamp: int | None
    chunks: int


@frozen
class Progress:
    """The answering tier, the number of chunks with an accurate vector, and the total number of chunks."""

    tier: str
    done: int
    total: int


class AccurateCoverage:
    """The notes that lack accurate vectors, in the order in which they are processed.

    The methods are thread-safe. `total` returns the number of chunks of all notes. `held` returns the
    digest of the text from which a note's accurate vectors were computed.
    """

    def __init__(self, total: Callable[[], int], held: Callable[[int], int | None]) -> None:
        self._total = total
        self._held = held
        self._lock = threading.Lock()
        #: Notes without current accurate vectors, by serial.
        self._lacking: dict[int, _Lacking] = {}
        #: Serials of the notes to embed, used as a stack: the last note is the newest.
        self._todo: dict[int, None] = {}
        #: File stamps of the texts from which the accurate vectors were computed, by serial.
        self._stamps: dict[int, int] = {}
        self._missing = 0
        self._is_planned = False
        #: Whether queries use the accurate vectors now.
        self.is_enough = False

    def plan(self, notes: Sequence[NoteText], stamps: Mapping[int, int], surplus: Iterable[int]) -> None:
        """Start the work. `notes` has all notes, newest last. `stamps` has the stamps of the vectors on disk.

        `surplus` has the serials of deleted notes that still have vectors. Changes that arrive meanwhile
        count as newer.
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
        """Record notes that have new static vectors, and deleted notes.

        The method must be called before any query sees the changes.
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
        """Remove the newest notes from the queue and return them.

        The notes have about `chunks` chunks in total. At least one note is returned if any is queued.
        """
        taken: list[int] = []
        with self._lock:
            while self._todo and chunks > 0:
                serial, _ = self._todo.popitem()
                taken.append(serial)
                chunks -= max(1, self._lacking[serial].chunks)
        return taken

    def filled(self, serial: int, stamp: int | None) -> None:
        """Record that a note has accurate vectors for the text with this stamp.

        A stamp of None means that the note is deleted.

        A note that has changed meanwhile still counts as lacking vectors.
        """
        with self._lock:
            lacking = self._lacking.get(serial)
            if lacking is not None and lacking.stamp == stamp:
                self._clear(serial, stamp)
            self._judge()

    def retry(self) -> None:
        """Queue all notes that lack vectors again."""
        with self._lock:
            for serial in self._lacking:
                self._todo.setdefault(serial)

    def _judge(self) -> None:
        """Switch to the other tier if the coverage has crossed the limit for it."""
        if not self._is_planned:
            return
        total = self._total()
        done = total - self._missing
        self.is_enough = total > 0 and done >= (TOO_FEW if self.is_enough else ENOUGH) * total

    def stale(self) -> frozenset[int]:
        """Return the notes whose accurate vectors must not be used because they are missing or outdated."""
        with self._lock:
            return frozenset(self._lacking)

    def stamps(self) -> dict[int, int]:
        """Return a copy of the file stamps of the texts from which the accurate vectors were computed."""
        with self._lock:
            return dict(self._stamps)

    @property
    def is_drained(self) -> bool:
        """Return whether no note is waiting to be embedded at the moment."""
        return not self._todo

    @property
    def is_complete(self) -> bool:
        """Return whether every note has its vectors."""
        return self._is_planned and not self._lacking

    def counts(self) -> tuple[int, int]:
        """Return the number of chunks with an accurate vector, and the total number of chunks."""
        total = self._total()
        return (max(0, total - self._missing) if self._is_planned else 0), total
