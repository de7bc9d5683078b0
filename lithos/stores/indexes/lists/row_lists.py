"""The inverted lists: which rows are near which centre, and how many of the lists a query looks into.

A row is in the list of its nearest centre. A query looks into the lists in the order of their centres'
similarity to it, twice as many rows each time, until the second half of them has given hardly any of the
best rows (the yield falls by about half with each doubling, so as few are missed). Where the yield does not
fall, as when all notes are alike, the exact scan is as cheap, and answers instead.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from lithos.stores.indexes.chunk_rows import Codes, multiply
from lithos.stores.indexes.embedder import Matrix
from lithos.stores.indexes.lists.clustering import Numbers

#: Rows that are looked at first, for the square root of all.
FIRST_PER_ROOT: Final = 10.0
#: The share of the rows from which on the exact scan is as cheap: a row copied out of the matrix takes some
#: four times as long as one in sequence, and several queries share the scan.
MOST: Final = 0.16
#: The yield is judged by so many of the best rows, or by as many as notes are wanted.
JUDGED: Final = 100
#: The yield, as a share of the best rows, that is small enough; and from a share of all rows on, where
#: looking further costs more than it finds.
ENOUGH: Final = 0.015
LATE: Final = 0.08
LATE_FROM: Final = 0.05


@frozen(eq=False)
class RowLists:
    """A value; changes of the rows make a new one."""

    #: The centres (lists, dims), all of one length: by them rows get their list.
    centres: Codes
    #: Rows, list by list; one may be dead by now, or another note's, which is then also looked for elsewhere.
    rows: NDArray[np.uint32]
    #: Where each list begins in `rows`, and the end of the last.
    starts: NDArray[np.int64]
    #: How many rows there were when the centres were trained.
    trained_on: int

    @classmethod
    def make(cls, centres: Codes, numbers: Numbers, rows: NDArray[np.uint32], trained_on: int) -> RowLists:
        """Lists of `rows`, each of which has the number of its list."""
        order = np.argsort(numbers, kind="stable")
        ends = np.cumsum(np.bincount(numbers, minlength=len(centres)))
        starts = np.concatenate([[0], ends]).astype(np.int64)
        return cls(centres, rows[order], starts, trained_on)

    def numbers(self) -> Numbers:
        """The number of its list for each of `rows`."""
        return np.repeat(np.arange(len(self.centres), dtype=np.uint16), np.diff(self.starts))

    def gather(self, lists: NDArray[np.intp]) -> NDArray[np.intp]:
        """The rows of some lists, one list after the other."""
        parts = [self.rows[self.starts[number] : self.starts[number + 1]] for number in lists.tolist()]
        return np.concatenate(parts, dtype=np.intp) if parts else np.zeros(0, np.intp)

    def probe(
        self, query: Codes, compare: Callable[[NDArray[np.intp]], Matrix], best: Matrix, most: int
    ) -> tuple[NDArray[np.intp], Matrix] | None:
        """Rows among which the nearest of all rows are, with their similarities to `query` (dims,).

        `compare` gives the similarities of rows, negative for what does not count; `best` are those of rows
        that are in no list, `most` is how many notes are wanted. None: scan all.
        """
        order = np.argsort(-multiply(self.centres, query[None, :])[:, 0].astype(np.int32), kind="stable")
        sizes = np.cumsum(np.diff(self.starts)[order])
        judged = max(most, JUDGED)
        share, done = FIRST_PER_ROOT / max(1.0, sqrt(len(self.rows))), 0
        rows, similarities = np.zeros(0, np.intp), np.zeros(0, np.float32)
        while share <= MOST:
            end = min(int(np.searchsorted(sizes, share * len(self.rows))) + 1, len(order))
            if sizes[end - 1] > MOST * len(self.rows):
                return None  # lists of very many rows that are alike
            more = self.gather(order[done:end])
            found = compare(more)
            rows, similarities = np.concatenate([rows, more]), np.concatenate([similarities, found])
            level = _highest(np.concatenate([similarities, best]), judged)
            late = np.count_nonzero(similarities[len(similarities) // 2 :] >= max(level, 0)) / judged
            if late <= (ENOUGH if share < LATE_FROM else LATE):
                return rows, similarities
            if late > LATE * MOST / share:
                return None  # halved with each doubling it would not be small enough in time
            share, done = 2 * share, end
        return None


def _highest(values: Matrix, place: int) -> float:
    """The value at a place of the descending order; the lowest where there are fewer."""
    at = max(0, len(values) - place)
    return float(np.partition(values, at)[at]) if len(values) else 0.0
