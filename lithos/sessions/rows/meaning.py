"""Semantic search over the vectors of turns, which are read block by block and never kept in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lithos.search.embedding.embedder import Matrix
from lithos.search.index.chunk_rows import VectorHit, best_per_note, compare_codes, encode_rows
from lithos.sessions.rows.blocks import PLACE_BITS, BlockVectors

#: Number of rows that are compared at once: 4 MB at 256 dimensions.
_AT_ONCE: Final = 16_384


#: Number, places, inverse lengths and codes of a block (`BlockVectors.pack`).
PackedBlock: TypeAlias = tuple[int, bytes, bytes, bytes]


def nearest_turns(
    blocks: Iterable[PackedBlock], vector: Matrix, threshold: float, most: int
) -> list[VectorHit]:
    """Return the best passage of each of the `most` nearest turns, best first. `vector` has length 1."""
    codes = encode_rows(vector[None])
    if not codes.any():
        return []
    found: list[tuple[NDArray[np.uint64], Matrix]] = []
    for serials, vectors in _batches(blocks):
        (similarities,) = compare_codes(vectors.codes, vectors.inverse, codes)
        near = np.flatnonzero(similarities >= threshold)
        found.append((serials[near], similarities[near]))
    if not found:
        return []
    serials = np.concatenate([each for each, _ in found])
    similarities = np.concatenate([each for _, each in found])
    return best_per_note(serials, np.zeros(len(serials), np.uint32), similarities, most)


def _batches(blocks: Iterable[PackedBlock]) -> Iterator[tuple[NDArray[np.uint64], BlockVectors]]:
    waiting, rows = list[PackedBlock](), 0
    for block in blocks:
        waiting.append(block)
        rows += len(block[1])
        if rows >= _AT_ONCE:
            yield _joined(waiting)
            waiting, rows = [], 0
    if rows:
        yield _joined(waiting)


def _joined(some: list[PackedBlock]) -> tuple[NDArray[np.uint64], BlockVectors]:
    numbers, places, inverse, codes = zip(*some, strict=True)
    vectors = BlockVectors.unpack(b"".join(places), b"".join(inverse), b"".join(codes))
    begins = np.array(numbers, np.uint64) << np.uint64(PLACE_BITS)
    serials = np.repeat(begins, [len(each) for each in places]) + vectors.places.astype(np.uint64)
    return serials, vectors
