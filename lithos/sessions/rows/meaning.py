"""Semantic search over the vectors of turns, which are read block by block and never kept in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lithos.search.index.chunk_rows import Codes, VectorHit, best_per_note, compare_codes, encode_rows
from lithos.search.index.embedder import Matrix
from lithos.sessions.rows.blocks import PLACE_BITS, BlockVectors

#: Number of rows that are compared at once: 4 MB at 256 dimensions.
_AT_ONCE: Final = 16_384


def nearest_turns(
    blocks: Iterable[tuple[int, bytes]], vector: Matrix, threshold: float, most: int
) -> list[VectorHit]:
    """Return the best passage of each of the `most` nearest turns, best first.

    `blocks` yields the number and the packed vectors of each block. `vector` has length 1.
    """
    codes = encode_rows(vector[None])
    if not codes.any():
        return []
    found: list[tuple[NDArray[np.uint64], Matrix]] = []
    for serials, rows, inverse in _batches(blocks):
        (similarities,) = compare_codes(rows, inverse, codes)
        near = np.flatnonzero(similarities >= threshold)
        found.append((serials[near], similarities[near]))
    if not found:
        return []
    serials = np.concatenate([each for each, _ in found])
    similarities = np.concatenate([each for _, each in found])
    return best_per_note(serials, np.zeros(len(serials), np.uint32), similarities, most)


def _batches(
    blocks: Iterable[tuple[int, bytes]],
) -> Iterator[tuple[NDArray[np.uint64], Codes, Matrix]]:
    waiting: list[tuple[int, BlockVectors]] = []
    rows = 0
    for number, packed in blocks:
        vectors = BlockVectors.unpack(packed)
        if not len(vectors.codes):
            continue
        waiting.append((number, vectors))
        rows += len(vectors.codes)
        if rows >= _AT_ONCE:
            yield _joined(waiting)
            waiting, rows = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(some: list[tuple[int, BlockVectors]]) -> tuple[NDArray[np.uint64], Codes, Matrix]:
    serials = [each.places.astype(np.uint64) + np.uint64(number << PLACE_BITS) for number, each in some]
    codes = np.concatenate([each.codes for _, each in some])
    return np.concatenate(serials), codes, np.concatenate([each.inverse for _, each in some])
