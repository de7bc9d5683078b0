"""In-memory vectors of remembered questions: one int8 matrix of one embedder, scanned in full.

100,000 questions with 256 numbers each take 26 MB. A comparison with all of them takes about a millisecond.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lithos.memory.model.questions import entry_weight
from lithos.search.index.chunk_rows import Codes, compare_codes, invert_lengths
from lithos.search.index.embedder import Matrix

#: Maximum number of notes with evidence for one question, best first.
MOST_NOTES: Final = 1_000


class QuestionVector(NamedTuple):
    """Entry in the form that the matrix stores."""

    id: int
    note_id: str
    codes: bytes
    a: float
    b: float


class Evidence(NamedTuple):
    """Evidence E for one note, with the entry that contributes most."""

    note_id: str
    value: float
    entry: int


class QuestionMatrix:
    """Vectors, notes and weights of all entries of one embedder.

    Only one thread at a time may change the matrix. Any thread may call `weigh` meanwhile and then waits a
    few milliseconds at most.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Embedder of these vectors. None before the first load.
        self.embedder: str | None = None
        #: True once every stored entry of that embedder is loaded.
        self.is_complete = False
        self._clear(0)

    def _clear(self, dims: int) -> None:
        self._codes: Codes = np.zeros((0, dims), np.int8)
        self._inverse: Matrix = np.zeros(0, np.float32)
        self._weights: Matrix = np.zeros(0, np.float32)
        self._ids: NDArray[np.int64] = np.zeros(0, np.int64)
        self._owners: NDArray[np.int64] = np.zeros(0, np.int64)
        self._used = 0
        self._row_of: dict[int, int] = {}
        self._free: list[int] = []
        self._numbers: dict[str, int] = {}
        self._notes: list[str] = []

    def __len__(self) -> int:
        """Return the number of searchable entries."""
        return len(self._row_of)

    def begin(self, embedder: str | None, dims: int) -> None:
        """Clear the matrix for vectors of an embedder. It is incomplete until `finish`."""
        with self._lock:
            self.embedder, self.is_complete = embedder, False
            self._clear(dims)

    def finish(self) -> None:
        """Mark the matrix as completely loaded."""
        self.is_complete = True

    def put(self, entries: Sequence[QuestionVector]) -> None:
        """Insert or replace entries. An entry without a vector of the right length cannot be found."""
        dims = self._codes.shape[1]
        fitting = [entry for entry in entries if len(entry.codes) == dims]
        self.drop(entry.id for entry in entries if len(entry.codes) != dims)
        if not fitting:
            return
        codes = np.frombuffer(b"".join(entry.codes for entry in fitting), np.int8).reshape(-1, dims)
        with self._lock:
            rows = [self._place(entry.id) for entry in fitting]
            self._codes[rows] = codes
            self._inverse[rows] = invert_lengths(codes)
            self._weights[rows] = [entry_weight(entry.a, entry.b) for entry in fitting]
            self._ids[rows] = [entry.id for entry in fitting]
            self._owners[rows] = [self._number(entry.note_id) for entry in fitting]

    def _place(self, entry: int) -> int:
        row = self._row_of.get(entry)
        if row is None:
            row = self._free.pop() if self._free else self._used
            self._used = max(self._used, row + 1)
            self._row_of[entry] = row
            self._grow()
        return row

    def _grow(self) -> None:
        have = len(self._codes)
        if self._used <= have:
            return
        room = max(self._used, have + have // 2, 1024)
        # No view of these arrays outlives the lock.
        self._codes.resize((room, self._codes.shape[1]), refcheck=False)
        for column in (self._inverse, self._weights, self._ids, self._owners):
            column.resize(room, refcheck=False)
        self._inverse[have:] = np.nan

    def _number(self, note_id: str) -> int:
        number = self._numbers.setdefault(note_id, len(self._notes))
        if number == len(self._notes):
            self._notes.append(note_id)
        return number

    def drop(self, ids: Iterable[int]) -> None:
        """Remove these entries if they are present."""
        with self._lock:
            for entry in ids:
                row = self._row_of.pop(entry, None)
                if row is not None:
                    self._inverse[row] = np.nan
                    self._free.append(row)
            if not self._row_of:
                self._clear(self._codes.shape[1])

    def cited_near(self, codes: Codes, cosine: float, weight: float) -> list[str]:
        """Return notes cited for a question at least this near, with more than this weight, nearest first."""
        with self._lock:
            if (cosines := self._compare(codes)) is None:
                return []
            rows = np.flatnonzero((cosines >= cosine) & (self._weights[: self._used] > weight))
            owners = self._owners[rows[np.lexsort((self._ids[rows], -cosines[rows]))]]
            notes = self._notes
        return list(dict.fromkeys(notes[owner] for owner in owners.tolist()))

    def _compare(self, codes: Codes) -> Matrix | None:
        """Return the similarity of all entries to a question, or None without a comparable entry."""
        if not self._row_of or len(codes) != self._codes.shape[1] or not codes.any():
            return None
        return next(compare_codes(self._codes[: self._used], self._inverse[: self._used], codes[None]))

    def weigh(self, codes: Codes, theta: float) -> list[Evidence]:
        """Return the notes with evidence for the question vector (dims,), most evidence first.

        `theta` is defined in `memory.model.questions`, like the formulas. Ties are ordered by note.
        """
        if theta >= 1:
            return []
        with self._lock:
            if (cosines := self._compare(codes)) is None:
                return []
            rows = np.flatnonzero(cosines > theta)
            parts = self._weights[rows] * np.minimum((cosines[rows].astype(float) - theta) / (1 - theta), 1)
            owners, ids = self._owners[rows], self._ids[rows]
        order = np.lexsort((ids, -parts, owners))
        owners, parts, ids = owners[order], parts[order], ids[order]
        firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        if not len(firsts):
            return []
        values = -np.expm1(np.add.reduceat(np.log1p(-parts), firsts))
        found = zip(owners[firsts].tolist(), values.tolist(), ids[firsts].tolist(), strict=True)
        notes = self._notes
        evidence = [Evidence(notes[owner], value, entry) for owner, value, entry in found if value > 0]
        evidence.sort(key=lambda each: (-each.value, each.note_id))
        return evidence[:MOST_NOTES]
