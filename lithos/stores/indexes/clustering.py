"""Spherical k-means over int8 rows, and the assignment of rows to the nearest centre.

Everything is done in pieces of some milliseconds in kernels that release the interpreter (GIL): the caller
is a background thread, and the event loop runs meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lithos.stores.indexes.chunk_rows import Codes, invert_lengths, multiply
from lithos.stores.indexes.embedder import Matrix

#: Lists for the square root of the rows: more need fewer rows for the same recall, and a longer build.
PER_ROOT: Final = 6.0
#: With more, comparing the centres with a query takes as long as comparing the rows.
MOST_LISTS: Final = 12_288
#: Rows of the training sample per list, and passes over it (Lloyd's algorithm; more change little).
SAMPLE_PER_LIST: Final = 24
PASSES: Final = 6
#: Rows and centres of one call into the kernels: what both need stays in a core's cache.
ROWS_AT_ONCE: Final = 1024
_CENTRES_AT_ONCE: Final = 512

#: The numbers of lists, by row.
Numbers = NDArray[np.uint16]


class Stopped(Exception):
    """The work was given up because the index closes."""


def lists_for(rows: int) -> int:
    """How many lists so many rows get."""
    return max(1, min(MOST_LISTS, round(PER_ROOT * sqrt(rows))))


def train_centres(sample: Codes, lists: int, check: Callable[[], None]) -> Codes:
    """The centres (lists, dims) of a sample (rows, dims) without rows of zeros, all of about one length.

    Deterministic. `check` is called between pieces and may raise.
    """
    random = np.random.default_rng(len(sample))
    lists = min(lists, len(sample))
    weights = np.nan_to_num(invert_lengths(sample))
    centres = _of_one_length(_scaled(sample, weights, random.choice(len(sample), lists, replace=False)))
    for _ in range(PASSES):
        sums = np.zeros((lists, sample.shape[1]), np.float32)
        for start in range(0, len(sample), ROWS_AT_ONCE):
            check()
            piece = np.arange(start, min(start + ROWS_AT_ONCE, len(sample)))
            _add_by_list(sums, assign(sample[piece], centres), _scaled(sample, weights, piece))
        empty = np.flatnonzero(~sums.any(axis=1))
        sums[empty] = _scaled(sample, weights, random.choice(len(sample), len(empty)))
        centres = _of_one_length(sums)
    return centres


def assign(rows: Codes, centres: Codes) -> Numbers:
    """The nearest centre of each row; the centres are of one length, so the products order them."""
    best = np.full(len(rows), np.iinfo(np.int32).min, np.int64)
    found = np.zeros(len(rows), np.uint16)
    at = np.arange(len(rows))
    for start in range(0, len(centres), _CENTRES_AT_ONCE):
        some = centres[start : start + _CENTRES_AT_ONCE]
        products = multiply(rows, some)
        nearest = products.argmax(axis=1)
        highest = products[at, nearest]
        better = highest > best
        found[better] = nearest[better] + start
        best[better] = highest[better]
    return found


def _add_by_list(sums: Matrix, numbers: Numbers, rows: Matrix) -> None:
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sums[ordered[starts]] += np.add.reduceat(rows[order], starts, axis=0)


def _scaled(codes: Codes, weights: Matrix, rows: NDArray[np.intp]) -> Matrix:
    """Rows as vectors of length 1."""
    scaled: Matrix = codes[rows].astype(np.float32) * weights[rows, None]
    return scaled


def _of_one_length(vectors: Matrix) -> Codes:
    """Quantised with one factor for all, so that their lengths stay the same."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / np.where(lengths > 0, lengths, 1)
    peak = np.abs(units).max(initial=0)
    return np.rint(units * (127 / peak if peak > 0 else 1)).astype(np.int8)
