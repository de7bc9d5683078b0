"""The mean vector of each note's chunks, one row per note. The means are computed on first use.

Only `VectorIndex` uses this module. `VectorIndex` holds its lock during all calls except `fill`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final

import numpy as np
from attrs import define, field

from lithos.search.index.chunk_rows import (
    ChunkRows,
    Codes,
    IndexedNote,
    VectorHit,
    best_per_note,
    choose_least,
    encode_rows,
    invert_lengths,
)

#: Number of notes whose means are computed under one lock. Searches wait for about a millisecond meanwhile.
_AT_ONCE: Final = 50
#: Minimum similarity of a hit, and number of extra candidates. Extra candidates are needed because
#: `choose_least` only estimates the cut-off.
_LEAST, _SPARE = 0.3, 24


@define(eq=False)
class NoteMeans:
    """The mean vectors of the notes.

    Before the first call of `fill` the table is empty and takes no memory.
    """

    _dims: int
    _rows: ChunkRows | None = field(default=None, init=False)
    _places: dict[int, int] = field(factory=dict, init=False)
    _filling: threading.Lock = field(factory=threading.Lock, init=False)
    _is_full: bool = field(default=False, init=False)

    def fill(
        self, lock: AbstractContextManager[None], notes: Mapping[int, IndexedNote], chunks: ChunkRows
    ) -> None:
        """Compute the missing means of all notes. Other threads may change notes meanwhile."""
        if self._is_full:
            return
        with self._filling:
            with lock:
                self._rows = self._rows or ChunkRows(self._dims)
                waiting = list(notes)
            for begin in range(0, len(waiting), _AT_ONCE):
                with lock:
                    for serial in waiting[begin : begin + _AT_ONCE]:
                        note = notes.get(serial)
                        if note is not None and serial not in self._places:
                            self.put(serial, chunks.codes(note.start, note.chunks))
            self._is_full = True

    def put(self, serial: int, codes: Codes) -> None:
        """Store the mean of a note's chunks."""
        if self._rows is not None:
            lengths = np.nan_to_num(invert_lengths(codes))
            mean = lengths @ codes.astype(np.float32) if len(codes) else np.zeros(self._dims, np.float32)
            self._places[serial] = self._rows.put(serial, encode_rows(mean[None, :]))

    def forget(self, serial: int) -> None:
        """Delete the mean of a note."""
        if self._rows is not None and (place := self._places.pop(serial, None)) is not None:
            self._rows.free(place, 1)

    def of(self, serial: int) -> Codes:
        """Return the mean of a note, shape (1, dims)."""
        assert self._rows is not None
        return self._rows.codes(self._places[serial], 1)

    def nearest(self, queries: Codes, most: int) -> list[list[VectorHit]]:
        """Return the notes whose means are nearest to each query, best first."""
        assert self._rows is not None
        found: list[list[VectorHit]] = []
        for similarities in self._rows.compare(queries):
            least = choose_least(similarities, _LEAST, 2 * most + _SPARE)
            best = np.flatnonzero(similarities >= least)
            serials, chunks = self._rows.owners(best)
            found.append(best_per_note(serials, chunks, similarities[best], most))
        return found
