"""Chunks of notes: their keys on disk, their order of change, and the best chunk of each note."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
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
#: Chunks that go to usearch at once when saving, and come from it when loading.
_CHUNKS_ON_DISK: Final = 65_536


#: Similarities that tell what the others are like.
_SAMPLE: Final = 3_000


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


class VectorQuery(NamedTuple):
    """What `VectorIndex.search` is asked for."""

    vector: Matrix
    notes: int
    threshold: float


#: `VectorHit._make` without its checks, in a quarter of the time.
_make_hit: Final = partial(tuple.__new__, VectorHit)


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


def slice_notes(notes: Sequence[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Yield notes, whose third value is their number of chunks, in parts of about `_CHUNKS_ON_DISK`."""
    part: list[tuple[int, int, int]] = []
    chunks = 0
    for note in notes:
        part.append(note)
        chunks += note[2]
        if chunks >= _CHUNKS_ON_DISK:
            yield part
            part, chunks = [], 0
    if part:
        yield part


def best_per_note(
    serials: NDArray[np.uint64], chunks: NDArray[np.uint32], similarities: Matrix, most: int | None = None
) -> list[VectorHit]:
    """Return the best chunk of each of the `most` best notes, best first; ties go by serial and chunk."""
    order = np.lexsort((chunks, serials, -similarities))
    ordered = serials[order]
    by_note = np.argsort(ordered, kind="stable")
    is_first = np.ones(len(order), bool)
    np.not_equal(ordered[by_note[1:]], ordered[by_note[:-1]], out=is_first[1:])
    chosen = order[np.sort(by_note[is_first])[:most]]
    rows = zip(serials[chosen].tolist(), chunks[chosen].tolist(), similarities[chosen].tolist(), strict=True)
    return list(map(_make_hit, rows))


def choose_least(similarities: Matrix, threshold: float, most: int) -> float:
    """A similarity, not below `threshold`, that about `most` have; found by looking at some of them."""
    sample = similarities[:: max(1, len(similarities) // _SAMPLE)]
    wanted = most * len(sample) // max(1, len(similarities))
    passing = sample[sample >= threshold]
    if wanted >= len(passing):
        return threshold
    return float(np.partition(passing, len(passing) - 1 - wanted)[len(passing) - 1 - wanted])
