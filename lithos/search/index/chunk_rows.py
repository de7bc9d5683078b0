"""The vectors of all chunks as an int8 matrix, which a search scans completely (brute force).

A vector of length 1 is quantised to integers from -127 to 127. Each row is scaled to use that whole range.
This changes a cosine by less than 0.003 (usually 0.0003, at 256 dimensions) and takes half the bytes of half
precision. The kernels that usearch uses compare 50,000 rows with a query in 0.6 ms.

The module also defines the keys of chunks on disk, splits changes into batches, and ranks notes by their best
chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numkong
import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from lithos.search.embedding.embedder import Matrix

T = TypeVar("T")

#: Number of bits of a key that contain the chunk number. The higher bits contain the serial of the note.
CHUNK_BITS: Final = 20
MAX_CHUNKS: Final = 1 << CHUNK_BITS
#: Number of chunks that are changed under one lock. Searches wait for about a millisecond meanwhile.
_CHUNKS_AT_ONCE: Final = 128
#: Number of chunks that one call passes to usearch when saving, or reads from usearch when loading.
_CHUNKS_ON_DISK: Final = 65_536


#: Number of similarities sampled to estimate a quantile.
_SAMPLE: Final = 3_000


@frozen(eq=False)
class VectorEntry:
    """A note to add to the vector index, or to update there.

    Row `i` of `vectors` (chunks, dims) is the vector of chunk `i`. Searches never find a row of zeros.
    """

    serial: int
    stamp: int
    vectors: Matrix


class IndexedNote(NamedTuple):
    """An indexed note. Its chunks occupy `chunks` rows, from row `start` on."""

    stamp: int
    chunks: int
    start: int


class VectorHit(NamedTuple):
    """The best chunk of a note. `similarity` is its cosine, 0..1."""

    serial: int
    chunk: int
    similarity: float


class VectorQuery(NamedTuple):
    """The arguments of one `VectorIndex.search`."""

    vector: Matrix
    notes: int
    threshold: float


#: Maximum number of chunks that are ranked in Python. A typical search ranks about 500 chunks.
_FEW_CHUNKS: Final = 2_000
#: Creates the same object as `VectorHit._make`, but without its checks and in a quarter of the time.
_make_hit: Final = partial(tuple.__new__, VectorHit)


def keys_of(sizes: Sequence[tuple[int, int]]) -> NDArray[np.uint64]:
    """Return the keys of all chunks, in order. `sizes` has (serial, number of chunks) of each note."""
    serials, chunks = _chunks_of(sizes)
    return (serials << np.uint64(CHUNK_BITS)) + chunks


def _chunks_of(sizes: Sequence[tuple[int, int]]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the serial and the chunk number of each chunk, in order.

    `sizes` has (serial, number of chunks) of each note.
    """
    serials, counts = np.array(sizes, np.uint64).reshape(-1, 2).T
    counts = counts.astype(np.intp)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(serials, counts), (np.arange(counts.sum()) - before).astype(np.uint64)


def slice_entries(entries: Sequence[VectorEntry]) -> Iterator[list[VectorEntry]]:
    """Yield the entries in slices of about `_CHUNKS_AT_ONCE` chunks."""
    return _slices(entries, lambda entry: len(entry.vectors), _CHUNKS_AT_ONCE)


def slice_notes(notes: Sequence[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Yield the notes in slices of about `_CHUNKS_ON_DISK` chunks.

    The third value of each note is its number of chunks.
    """
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
    """Return the best chunk of each of the `most` best notes, best first.

    Equal similarities are ordered by serial and chunk.
    """
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
    """Return the first chunk of each of `most` notes. This is faster than numpy if there are few chunks."""
    found: dict[int, VectorHit] = {}
    rows = zip(serials.tolist(), chunks.tolist(), similarities.tolist(), strict=True)
    for row in rows:
        if row[0] not in found:
            if len(found) == most:
                break
            found[row[0]] = _make_hit(row)
    return list(found.values())


def choose_least(similarities: Matrix, threshold: float, most: int) -> float:
    """Return the estimated similarity that about `most` chunks reach. The result is at least `threshold`."""
    sample = similarities[:: max(1, len(similarities) // _SAMPLE)]
    wanted = most * len(sample) // max(1, len(similarities))
    passing = sample[sample >= threshold]
    if wanted >= len(passing):
        return threshold
    return float(np.partition(passing, len(passing) - 1 - wanted)[len(passing) - 1 - wanted])


Codes: TypeAlias = NDArray[np.int8]

#: Number of queries that the kernels compare with a row in the time that a single query takes.
ABREAST: Final = 4
_PEAK: Final = 127
#: Minimum ratio of all rows to requested rows. From this ratio on, the requested rows are copied together
#: before they are compared.
_WORTH_COPYING: Final = 4
#: Number of rows that are copied at once. These rows take 2 MB, which fits a core's cache.
_COPIED_AT_ONCE: Final = 8_192


def encode_rows(vectors: Matrix) -> Codes:
    """Quantise vectors (rows, dims) to int8. A row of zeros stays a row of zeros."""
    peaks = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    return np.rint(vectors * (_PEAK / np.where(peaks > 0, peaks, 1))).astype(np.int8)


def invert_lengths(codes: Codes) -> Matrix:
    """Return the inverse length of each row. A row of zeros gets NaN, so it reaches no threshold."""
    squares = np.einsum("ij,ij->i", codes, codes, dtype=np.int32).astype(np.float32)
    inverse = np.full(len(codes), np.nan, np.float32)
    np.divide(1, np.sqrt(squares), out=inverse, where=squares > 0)
    return inverse


def _choose_products() -> Any:
    """Return the number type of the products. Integers take a third less time if the kernels support them."""
    ones = np.ones((2, 8), np.int8)
    wanted: Any = "int32"
    try:
        numkong.cdist(ones, ones[:1], metric="dot", out_dtype=wanted)
    except (TypeError, ValueError):
        return "float32"  # `float32` is as exact as integers: no sum reaches 2**24 below 1,040 dimensions.
    return wanted


_PRODUCTS: Final = _choose_products()


def multiply(codes: Codes, others: Codes) -> NDArray[Any]:
    """Return the product of every row of `codes` with every row of `others`, shape (rows, others)."""
    # The kernel releases the interpreter lock and starts no threads.
    return np.asarray(numkong.cdist(codes, others, metric="dot", out_dtype=_PRODUCTS))


def compare_codes(codes: Codes, inverse: Matrix, queries: Codes) -> Iterator[Matrix]:
    """Yield one array per query: its similarity (0..1) to every row."""
    if not len(codes):
        yield from np.zeros((len(queries), 0), np.float32)
        return
    # Without AVX-512, the kernel for four queries takes a fifth less time than the kernel for a single query.
    # With AVX-512 both kernels take the same time.
    abreast = np.resize(queries, (max(ABREAST, len(queries)), queries.shape[1]))
    products = multiply(codes, abreast)[:, : len(queries)]
    for of_query, length in zip(products.T, invert_lengths(queries), strict=True):
        yield _scale(of_query, inverse, length)


def _scale(products: NDArray[Any], inverse: Matrix, length: np.float32) -> Matrix:
    scaled: Matrix = inverse * length
    np.multiply(products, scaled, out=scaled, dtype=np.float32, casting="unsafe")
    return np.clip(scaled, 0, 1, out=scaled)


#: The matrix grows by 1/16 of its size. The new rows are filled with zeros at once (80 MB for a matrix of 1.3
#: GB).
_GROWTH: Final = 16


class ChunkRows:
    """A growing matrix with a free list. Its owner stores the first row and the number of rows of each note.

    Freed rows are reused, first for notes with the same number of rows.
    """

    def __init__(self, dims: int) -> None:
        self._codes: Codes = np.zeros((0, dims), np.int8)
        self._inverse: Matrix = np.zeros(0, np.float32)
        self._serials = np.zeros(0, np.uint64)
        self._chunks = np.zeros(0, np.uint32)
        #: Number of rows in use, including free rows.
        self.used = 0
        #: First rows of the free runs, by run length.
        self._free: dict[int, list[int]] = {}
        #: Number of rows that a search can find.
        self.found = 0
        #: Buffer to which scattered rows are copied, block by block, so that one call can compare them.
        self._copied: Codes = np.zeros((_COPIED_AT_ONCE, dims), np.int8)

    def reserve(self, rows: int) -> None:
        """Reserve memory for `rows` more rows."""
        self._grow(self.used + rows)

    def put(self, serial: int, codes: Codes) -> int:
        """Add the chunks of a note and return their first row."""
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
        """Append the chunks of several notes after all rows.

        `sizes` has (serial, number of chunks) of each note.

        Return the first of the new rows.
        """
        start, self.used = self.used, self.used + len(codes)
        self._grow(self.used)
        rows = slice(start, self.used)
        self._codes[rows] = codes
        self._inverse[rows] = invert_lengths(codes)
        self._serials[rows], self._chunks[rows] = _chunks_of(sizes)
        self.found += int(np.count_nonzero(~np.isnan(self._inverse[rows])))
        return start

    def free(self, start: int, count: int) -> None:
        """Free rows. Searches no longer find these rows, and new notes may reuse them."""
        if count:
            rows = slice(start, start + count)
            self.found -= int(np.count_nonzero(~np.isnan(self._inverse[rows])))
            self._inverse[rows] = np.nan
            self._free.setdefault(count, []).append(start)

    def codes(self, start: int, count: int) -> Codes:
        """Return a view of a note's quantised rows."""
        return self._codes[start : start + count]

    def owners(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        """Return the serial and the chunk number of each of the rows."""
        return self._serials[rows], self._chunks[rows]

    def compare(self, queries: Codes) -> Iterator[Matrix]:
        """Yield one array per query: its similarity (0..1) to every row.

        `queries` has the shape (queries, dims).

        Rows that cannot be found get NaN. Up to `ABREAST` queries take hardly longer than a single query.
        """
        return compare_codes(self._codes[: self.used], self._inverse[: self.used], queries)

    def compare_some(self, query: Codes, rows: NDArray[np.intp]) -> Matrix:
        """Return the similarity (0..1) of some rows to one query (dims,).

        Rows that cannot be found get NaN.
        """
        if len(rows) * _WORTH_COPYING < self.used:
            return self._compare_rows(query, rows)
        return next(self.compare(query[None, :]))[rows]

    def _compare_rows(self, query: Codes, rows: NDArray[np.intp]) -> Matrix:
        """Copy the rows together and return their similarities.

        The method makes few calls, so it rarely has to wait for the interpreter lock of a busy event loop.
        """
        products = np.zeros(len(rows), np.float32)
        for start in range(0, len(rows), _COPIED_AT_ONCE):
            piece = rows[start : start + _COPIED_AT_ONCE]
            codes = self._copied[: len(piece)]
            self._codes.take(piece, axis=0, out=codes, mode="clip")
            products[start : start + len(piece)] = multiply(codes, query[None, :])[:, 0]
        return _scale(products, self._inverse.take(rows), invert_lengths(query[None, :])[0])

    def compare_together(self, queries: Codes, rows: NDArray[np.intp]) -> Matrix:
        """Return the similarity of a few rows to several queries, shape (rows, queries).

        Rows that cannot be found get 0.
        """
        lengths = np.nan_to_num(np.outer(self._inverse[rows], invert_lengths(queries)))
        return np.clip(multiply(self._codes[rows], queries) * lengths, 0, 1)

    def _take(self, count: int) -> int:
        """Reserve `count` adjacent rows and return the first of them. Free rows are used before new rows."""
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
        # Resizing in place lets realloc move a large block by changing the page table. A copy would take
        # seconds and twice the memory. Rows are added under a lock, and no view of these arrays is used after
        # the lock is released.
        self._codes.resize((room, self._codes.shape[1]), refcheck=False)
        for column in (self._inverse, self._serials, self._chunks):
            column.resize(room, refcheck=False)


def rows_of(runs: Sequence[tuple[int, int]]) -> NDArray[np.intp]:
    """Return the numbers of all rows in `runs`, in order. A run is (first row, number of rows)."""
    if not runs:
        return np.zeros(0, np.intp)
    starts, counts = np.array(runs, np.intp).T
    ends = np.cumsum(counts)
    rows: NDArray[np.intp] = np.repeat(starts - (ends - counts), counts) + np.arange(ends[-1])
    return rows
