"""Chunk keys of the vector store: which chunks of which notes, and the best chunk of each note."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from lithos.stores.embedder import Matrix

#: A key is the serial of the note, then this many bits for the index of the chunk.
CHUNK_BITS: Final = 20
MAX_CHUNKS: Final = 1 << CHUNK_BITS
#: Chunks changed while searches wait: about a millisecond.
_CHUNKS_AT_ONCE: Final = 128


@frozen(eq=False)
class VectorEntry:
    """One note to index: row `i` of `vectors` (chunks, dims) is chunk `i`, a row of zeros is never found."""

    serial: int
    stamp: int
    vectors: Matrix


class VectorHit(NamedTuple):
    """A note's best chunk; `similarity` is its cosine, 0..1."""

    serial: int
    chunk: int
    similarity: float


def keys_of(sizes: Sequence[tuple[int, int]]) -> NDArray[np.uint64]:
    """Return the keys of all chunks of the given (serial, number of chunks), in order."""
    parts = [np.arange(chunks, dtype=np.uint64) + np.uint64(serial << CHUNK_BITS) for serial, chunks in sizes]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def slice_entries(entries: Sequence[VectorEntry]) -> Iterator[list[VectorEntry]]:
    """Yield the entries in parts of about `_CHUNKS_AT_ONCE` chunks; no serial is twice in a part."""
    part: dict[int, VectorEntry] = {}
    chunks = 0
    for entry in entries:
        if part and (chunks >= _CHUNKS_AT_ONCE or entry.serial in part):
            yield list(part.values())
            part, chunks = {}, 0
        part[entry.serial] = entry
        chunks += len(entry.vectors)
    if part:
        yield list(part.values())


def best_per_note(
    keys: NDArray[np.uint64], similarities: Matrix, threshold: float, most: int | None = None
) -> list[VectorHit]:
    """Return the best chunk of each of the `most` best notes from `threshold` on, best first.

    Ties go by serial and chunk.
    """
    passing = similarities >= threshold
    keys, similarities = keys[passing], similarities[passing]
    order = np.lexsort((keys, -similarities))
    serials = keys[order] >> np.uint64(CHUNK_BITS)
    _, first = np.unique(serials, return_index=True)
    chosen = order[np.sort(first)[:most]]
    chunks = keys[chosen] & np.uint64(MAX_CHUNKS - 1)
    rows = zip(
        (keys[chosen] >> np.uint64(CHUNK_BITS)).tolist(),
        chunks.tolist(),
        similarities[chosen].tolist(),
        strict=True,
    )
    return list(map(VectorHit._make, rows))
