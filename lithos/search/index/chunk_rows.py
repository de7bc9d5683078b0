"""The vector matrix of all chunks, quantised to int8 and scanned exhaustively (brute force), and chunk keys.

A vector of length 1 is quantised to whole numbers of -127..127, each row stretched to that range: its cosine
with another moves by less than 0.003, by 0.0003 as a rule (256 dimensions), for half the bytes of half
precision. 50,000 rows are compared with a query in 0.6 ms, by the kernels that usearch is built on.

Also the keys of chunks on disk, batches of changes, and the ranking of notes by their best chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numkong
import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from lithos.search.index.embedder import Matrix

T = TypeVar("T")

#: A key is the serial of the note, then this many bits for the index of the chunk.
CHUNK_BITS: Final = 20
MAX_CHUNKS: Final = 1 << CHUNK_BITS
#: Chunks changed under one lock, while searches wait: about a millisecond.
_CHUNKS_AT_ONCE: Final = 128
#: Chunks that go to usearch at once when saving, and come from it when loading.
_CHUNKS_ON_DISK: Final = 65_536


#: Sample size of similarities from which a quantile is estimated.
_SAMPLE: Final = 3_000


@frozen(eq=False)
class VectorEntry:
    """One note to index: row `i` of `vectors` (chunks, dims) is chunk `i`, a row of zeros is never found."""

    serial: int
    stamp: int
    vectors: Matrix


class IndexedNote(NamedTuple):
    """A note of the index: `start` is the first of its `chunks` rows."""

    stamp: int
    chunks: int
    start: int


class VectorHit(NamedTuple):
    """A note's best chunk; `similarity` is its cosine, 0..1."""

    serial: int
    chunk: int
    similarity: float


class VectorQuery(NamedTuple):
    """The arguments of `VectorIndex.search`."""

    vector: Matrix
    notes: int
    threshold: float


#: Chunks that are ranked in Python; a search looks at some five hundred.
_FEW_CHUNKS: Final = 2_000
#: `VectorHit._make` without its checks, in a quarter of the time.
_make_hit: Final = partial(tuple.__new__, VectorHit)


def keys_of(sizes: Sequence[tuple[int, int]]) -> NDArray[np.uint64]:
    """Return the keys of all chunks of the given (serial, number of chunks), in order."""
    serials, chunks = _chunks_of(sizes)
    return (serials << np.uint64(CHUNK_BITS)) + chunks


def _chunks_of(sizes: Sequence[tuple[int, int]]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The serial and the number of each chunk of the given (serial, number of chunks), in order."""
    serials, counts = np.array(sizes, np.uint64).reshape(-1, 2).T
    counts = counts.astype(np.intp)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(serials, counts), (np.arange(counts.sum()) - before).astype(np.uint64)


def slice_entries(entries: Sequence[VectorEntry]) -> Iterator[list[VectorEntry]]:
    """Yield the entries in parts of about `_CHUNKS_AT_ONCE` chunks."""
    return _slices(entries, lambda entry: len(entry.vectors), _CHUNKS_AT_ONCE)


def slice_notes(notes: Sequence[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Yield notes, whose third value is their number of chunks, in parts of about `_CHUNKS_ON_DISK`."""
    return _slices(notes, lambda note: note[2], _CHUNKS_ON_DISK)


def _slices(items: Sequence[T], chunks_of: Callable[[T], int], most: int) -> Iterator[list[T]]:
    part: list[T] = []
    chunks = 0
    for item in items:
        part.append(item)
        chunks += chunks_of(item)
        if chunks >= most:
            yield part
            part, chunks = [], 0
    if part:
        yield part


def best_per_note(
    serials: NDArray[np.uint64], chunks: NDArray[np.uint32], similarities: Matrix, most: int | None = None
) -> list[VectorHit]:
    """Return the best chunk of each of the `most` best notes, best first; ties go by serial and chunk."""
    if len(similarities) <= _FEW_CHUNKS:
        order = np.argsort(-similarities)
        descending = similarities[order]
        if not np.equal(descending[1:], descending[:-1]).any():
            return _first_per_note(serials[order], chunks[order], descending, most)
    order = np.lexsort((chunks, serials, -similarities))
    ordered = serials[order]
    by_note = np.argsort(ordered, kind="stable")
    is_first = np.ones(len(order), bool)
    np.not_equal(ordered[by_note[1:]], ordered[by_note[:-1]], out=is_first[1:])
    chosen = order[np.sort(by_note[is_first])[:most]]
    rows = zip(serials[chosen].tolist(), chunks[chosen].tolist(), similarities[chosen].tolist(), strict=True)
    return list(map(_make_hit, rows))


def _first_per_note(
    serials: NDArray[np.uint64], chunks: NDArray[np.uint32], similarities: Matrix, most: int | None
) -> list[VectorHit]:
    """The first chunk of each note, of `most` notes: for few chunks faster than the calls of numpy."""
    found: dict[int, VectorHit] = {}
    rows = zip(serials.tolist(), chunks.tolist(), similarities.tolist(), strict=True)
    for row in rows:
        if row[0] not in found:
            if len(found) == most:
                break
            found[row[0]] = _make_hit(row)
    return list(found.values())


def choose_least(similarities: Matrix, threshold: float, most: int) -> float:
    """A cut-off, not below `threshold`, that about `most` similarities reach; estimated from a sample."""
    sample = similarities[:: max(1, len(similarities) // _SAMPLE)]
    wanted = most * len(sample) // max(1, len(similarities))
    passing = sample[sample >= threshold]
    if wanted >= len(passing):
        return threshold
    return float(np.partition(passing, len(passing) - 1 - wanted)[len(passing) - 1 - wanted])


Codes: TypeAlias = NDArray[np.int8]

#: Batch size: queries that the kernels compare with a row in the time of one.
ABREAST: Final = 4
_PEAK: Final = 127
#: Requested rows are copied out of the matrix if it has this many times more rows.
_WORTH_COPYING: Final = 4
#: Rows that are copied at once: 2 MB, which a core's cache holds.
_COPIED_AT_ONCE: Final = 8_192


def encode_rows(vectors: Matrix) -> Codes:
    """Quantise vectors (rows, dims) to int8; a row of zeros stays one."""
    peaks = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    return np.rint(vectors * (_PEAK / np.where(peaks > 0, peaks, 1))).astype(np.int8)


def invert_lengths(codes: Codes) -> Matrix:
    """One over the length of each row; NaN, which passes no threshold, for a row of zeros."""
    squares = np.einsum("ij,ij->i", codes, codes, dtype=np.int32).astype(np.float32)
    inverse = np.full(len(codes), np.nan, np.float32)
    np.divide(1, np.sqrt(squares), out=inverse, where=squares > 0)
    return inverse


def _choose_products() -> Any:
    """The type of the products: whole numbers take a third less time, where the kernels give them."""
    ones = np.ones((2, 8), np.int8)
    wanted: Any = "int32"
    try:
        numkong.cdist(ones, ones[:1], metric="dot", out_dtype=wanted)
    except (TypeError, ValueError):
        return "float32"  # as exact: no sum reaches 2**24 before 1,040 dimensions
    return wanted


_PRODUCTS: Final = _choose_products()


def multiply(codes: Codes, others: Codes) -> NDArray[Any]:
    """The products of all rows with all others (rows, others)."""
    # The kernel lets other threads run meanwhile, and starts none.
    return np.asarray(numkong.cdist(codes, others, metric="dot", out_dtype=_PRODUCTS))


def compare_codes(codes: Codes, inverse: Matrix, queries: Codes) -> Iterator[Matrix]:
    """Similarity, 0..1, of all rows (rows, dims) to each of `queries`; `inverse`: see `invert_lengths`."""
    if not len(codes):
        yield from np.zeros((len(queries), 0), np.float32)
        return
    # Without AVX-512 the kernel for four takes a fifth less time than that for one, with it as much.
    abreast = np.resize(queries, (max(ABREAST, len(queries)), queries.shape[1]))
    products = multiply(codes, abreast)[:, : len(queries)]
    for of_query, length in zip(products.T, invert_lengths(queries), strict=True):
        yield _scale(of_query, inverse, length)


def _scale(products: NDArray[Any], inverse: Matrix, length: np.float32) -> Matrix:
    scaled: Matrix = inverse * length
    np.multiply(products, scaled, out=scaled, dtype=np.float32, casting="unsafe")
    return np.clip(scaled, 0, 1, out=scaled)


#: The matrix grows by this part of itself, zeroed at once: 80 MB of 1.3 GB.
_GROWTH: Final = 16


class ChunkRows:
    """A growing matrix with a free list; its owner knows at which row a note begins and how many it has.

    Freed rows are reused, first by as many as were freed together.
    """

    def __init__(self, dims: int) -> None:
        self._codes: Codes = np.zeros((0, dims), np.int8)
        self._inverse: Matrix = np.zeros(0, np.float32)
        self._serials = np.zeros(0, np.uint64)
        self._chunks = np.zeros(0, np.uint32)
        #: Rows, free ones included.
        self.used = 0
        #: Where runs of free rows begin, by their length.
        self._free: dict[int, list[int]] = {}
        #: Rows that can be found.
        self.found = 0
        #: Rows that are compared together are copied here first, a piece at a time.
        self._copied: Codes = np.zeros((_COPIED_AT_ONCE, dims), np.int8)

    def reserve(self, rows: int) -> None:
        """Reserve space for `rows` more rows."""
        self._grow(self.used + rows)

    def put(self, serial: int, codes: Codes) -> int:
        """Add the chunks of a note; the row at which they begin."""
        count = len(codes)
        start = self._take(count)
        rows = slice(start, start + count)
        self._codes[rows] = codes
        self._inverse[rows] = invert_lengths(codes)
        self._serials[rows] = serial
        self._chunks[rows] = np.arange(count)
        self.found += int(np.count_nonzero(~np.isnan(self._inverse[rows])))
        return start

    def append(self, sizes: Sequence[tuple[int, int]], codes: Codes) -> int:
        """Add all chunks of notes (serial, number of chunks) behind all rows; the row at which they begin."""
        start, self.used = self.used, self.used + len(codes)
        self._grow(self.used)
        rows = slice(start, self.used)
        self._codes[rows] = codes
        self._inverse[rows] = invert_lengths(codes)
        self._serials[rows], self._chunks[rows] = _chunks_of(sizes)
        self.found += int(np.count_nonzero(~np.isnan(self._inverse[rows])))
        return start

    def free(self, start: int, count: int) -> None:
        """Free rows: they are no longer found, and may be reused."""
        if count:
            rows = slice(start, start + count)
            self.found -= int(np.count_nonzero(~np.isnan(self._inverse[rows])))
            self._inverse[rows] = np.nan
            self._free.setdefault(count, []).append(start)

    def codes(self, start: int, count: int) -> Codes:
        """A view of a note's quantised rows."""
        return self._codes[start : start + count]

    def owners(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Serials and chunk numbers of rows."""
        return self._serials[rows], self._chunks[rows]

    def compare(self, queries: Codes) -> Iterator[Matrix]:
        """The similarity of every row to each of `queries` (queries, dims), 0..1.

        NaN for what cannot be found. Up to `ABREAST` queries take hardly longer than one.
        """
        return compare_codes(self._codes[: self.used], self._inverse[: self.used], queries)

    def compare_some(self, query: Codes, rows: NDArray[np.intp]) -> Matrix:
        """The same for one query (dims,) and some rows."""
        if len(rows) * _WORTH_COPYING < self.used:
            return self._compare_rows(query, rows)
        return next(self.compare(query[None, :]))[rows]

    def _compare_rows(self, query: Codes, rows: NDArray[np.intp]) -> Matrix:
        """The same, by copying the rows: few calls, so that a busy event loop is seldom waited for."""
        products = np.zeros(len(rows), np.float32)
        for start in range(0, len(rows), _COPIED_AT_ONCE):
            piece = rows[start : start + _COPIED_AT_ONCE]
            codes = self._copied[: len(piece)]
            self._codes.take(piece, axis=0, out=codes, mode="clip")
            products[start : start + len(piece)] = multiply(codes, query[None, :])[:, 0]
        return _scale(products, self._inverse.take(rows), invert_lengths(query[None, :])[0])

    def compare_together(self, queries: Codes, rows: NDArray[np.intp]) -> Matrix:
        """The similarity of a few rows to each of some queries (rows, queries); 0 for what is not found."""
        lengths = np.nan_to_num(np.outer(self._inverse[rows], invert_lengths(queries)))
        return np.clip(multiply(self._codes[rows], queries) * lengths, 0, 1)

    def _take(self, count: int) -> int:
        """Where `count` rows are free: a run of that length, the shortest longer one, or the end."""
        fitting = count if count in self._free else min((n for n in self._free if n > count), default=0)
        if count and fitting:
            starts = self._free[fitting]
            start = starts.pop()
            if not starts:
                del self._free[fitting]
            if fitting > count:
                self._free.setdefault(fitting - count, []).append(start + count)
            return start
        start, self.used = self.used, self.used + count
        self._grow(self.used)
        return start

    def _grow(self, rows: int) -> None:
        have = len(self._codes)
        if rows <= have:
            return
        room = max(rows, have + have // _GROWTH, 1024)
        # In place: a large block is moved by its page table (realloc), not copied, which would take seconds
        # and twice the memory. No view of these arrays outlives the lock under which rows are added.
        self._codes.resize((room, self._codes.shape[1]), refcheck=False)
        for column in (self._inverse, self._serials, self._chunks):
            column.resize(room, refcheck=False)


def rows_of(runs: Sequence[tuple[int, int]]) -> NDArray[np.intp]:
    """The rows of runs (first row, number of rows), in order."""
    if not runs:
        return np.zeros(0, np.intp)
    starts, counts = np.array(runs, np.intp).T
    ends = np.cumsum(counts)
    rows: NDArray[np.intp] = np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1])
    return rows
