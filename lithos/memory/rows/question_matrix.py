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
from lithos.search.embedding.embedder import Matrix
from lithos.search.index.chunk_rows import Codes, compare_codes, invert_lengths

#: Maximum number of notes with evidence for one question. The best notes are returned.
MOST_NOTES: Final = 1_000


class QuestionVector(NamedTuple):
    """An entry in the form that the matrix stores."""

    id: int
    note_id: str
    codes: bytes
    a: float
    b: float


class Evidence(NamedTuple):
    """The evidence E for one note, and the entry that contributes most to it."""

    note_id: str
    value: float
    entry: int


class QuestionMatrix:
    """The vectors, notes and weights of all entries of one embedder.

    Only one thread at a time may change the matrix. Meanwhile any thread may call `weigh`, which then waits
    at most a few milliseconds.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Embedder that made these vectors. None before the first load.
        self.embedder: str | None = None
        #: True if every stored entry of this embedder is loaded.
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
        """Clear the matrix for the vectors of an embedder.

        The matrix is incomplete until `finish` is called.
        """
        with self._lock:
            self.embedder, self.is_complete = embedder, False
            self._clear(dims)

    def finish(self) -> None:
        """Mark the matrix as complete."""
        self.is_complete = True

    def put(self, entries: Sequence[QuestionVector]) -> None:
        """Insert or replace entries.

        An entry cannot be found if its vector is missing or has a wrong length.
        """
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
        # No view of these arrays exists outside of the lock.
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
        """Remove these entries, as far as they exist."""
        with self._lock:
            for entry in ids:
                row = self._row_of.pop(entry, None)
                if row is not None:
                    self._inverse[row] = np.nan
                    self._free.append(row)
            if not self._row_of:
                self._clear(self._codes.shape[1])

    def cited_near(self, codes: Codes, cosine: float, weight: float) -> list[str]:
        """Return the notes cited for a similar question, nearest first.

        The similarity must be at least `cosine`, and the weight of the entry must exceed `weight`.
        """
        with self._lock:
            if (cosines := self._compare(codes)) is None:
                return []
            rows = np.flatnonzero((cosines >= cosine) & (self._weights[: self._used] > weight))
            owners = self._owners[rows[np.lexsort((self._ids[rows], -cosines[rows]))]]
            notes = self._notes
        return list(dict.fromkeys(notes[owner] for owner in owners.tolist()))

    def _compare(self, codes: Codes) -> Matrix | None:
        """Return the similarity of all entries to a question. Return None if there is no comparable entry."""
        if not self._row_of or len(codes) != self._codes.shape[1] or not codes.any():
            return None
        return next(compare_codes(self._codes[: self._used], self._inverse[: self._used], codes[None]))

    def weigh(self, codes: Codes, theta: float) -> list[Evidence]:
        """Return the notes with evidence for a question vector (dims,).

        The notes with the most evidence come first.

        `theta` and the formulas are defined in `memory.model.questions`. Equal notes are ordered by id.
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
