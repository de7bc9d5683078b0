"""The vector store: chunk vectors in a usearch index, and which notes they belong to.

Searches are exhaustive, so recall is complete: 50,000 chunks of 256 half-precision numbers take about 2 ms,
less than a graph walk that finds the best 400 of them with a recall of 0.7. The graph usearch insists on
is therefore kept as thin as it allows; adding 50,000 vectors takes a quarter of a second.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray
from usearch.index import Index

from lithos.stores import vector_files
from lithos.stores.chunk_keys import (
    CHUNK_BITS,
    MAX_CHUNKS,
    VectorEntry,
    VectorHit,
    best_per_note,
    keys_of,
    slice_entries,
)
from lithos.stores.embedder import EmbedderIdentity, Matrix
from lithos.stores.index_failure import IndexFailed
from lithos.stores.vector_files import StoreDamaged

#: Up to so many chunks are fetched and scored one by one (2 ms a thousand). A whole search is faster where
#: the wanted notes are among the best, but takes 45 ms where they are far down, and everybody waits.
_MAX_FETCHED: Final = 10_000
_NOTE_ROW: Final = np.dtype([("serial", np.uint64), ("stamp", np.uint64), ("chunks", np.uint64)])


class _IndexedNote(NamedTuple):
    stamp: int
    chunks: int


class _Turnstile:
    """A lock that is handed over: who waits gets it next, even from a thread that wants it back at once."""

    def __init__(self) -> None:
        self._next = threading.Lock()
        self._inside = threading.Lock()

    def __enter__(self) -> None:
        with self._next:
            self._inside.acquire()

    def __exit__(self, *_: object) -> None:
        self._inside.release()


__all__ = ["VectorEntry", "VectorHit", "VectorIndex", "stored_identity"]


class VectorIndex:
    """Chunk vectors of one embedder.

    One thread at a time calls `apply`, `save` and `close`; any thread may search meanwhile and then waits
    about a millisecond at most (during `save` as long as usearch writes: some 30 ms for 50,000 chunks).
    A note is found with its old chunks or its new ones, never in between. Nothing reaches
    the disk before `save`.
    """

    def __init__(self, directory: Path, identity: EmbedderIdentity) -> None:
        """Make an empty index; `open` is the way in that also reads what is on disk."""
        self.identity = identity
        self.quarantined: Path | None = None
        self.quarantine_reason: str | None = None
        self.last_updated: datetime | None = None
        self._directory = directory
        self._lock = _Turnstile()
        self._notes: dict[int, _IndexedNote] = {}
        self._index = _make_index(identity)
        self._dirty = True

    @classmethod
    def open(cls, directory: Path, identity: EmbedderIdentity) -> Self:
        """Load the store of `identity` in `directory`, which is created when missing.

        A store of another identity or format is left as it is and the index starts empty: `save` replaces
        it. A damaged store is moved aside (`quarantined`, `quarantine_reason`) and the index starts empty.
        """
        directory.mkdir(parents=True, exist_ok=True)
        opened = cls(directory, identity)
        try:
            opened._load()
        except StoreDamaged as damage:
            opened.quarantined = vector_files.quarantine_store(directory, damage.path)
            opened.quarantine_reason = str(damage)
        return opened

    def _load(self) -> None:
        manifest = vector_files.read_manifest(self._directory)
        if manifest is None or manifest.embedder != self.identity:
            return
        vector_files.verify_files(self._directory, manifest)
        index = _make_index(self.identity)
        vectors_path = self._directory / vector_files.vectors_name(manifest.generation)
        try:
            index.load(vectors_path)
        except RuntimeError as error:
            raise StoreDamaged(vectors_path, f"cannot be loaded ({error})") from error
        if len(index) != manifest.chunks or index.ndim != self.identity.dims:
            raise StoreDamaged(vectors_path, f"holds {len(index)} chunks instead of {manifest.chunks}")
        rows = np.load(self._directory / vector_files.notes_name(manifest.generation), allow_pickle=False)
        self._notes = {serial: _IndexedNote(stamp, chunks) for serial, stamp, chunks in rows.tolist()}
        self._index, self._dirty = index, False
        written = (self._directory / vector_files.MANIFEST).stat().st_mtime
        self.last_updated = datetime.fromtimestamp(written, UTC)

    @property
    def dirty(self) -> bool:
        """True while `save` would write something that is not on disk."""
        return self._dirty

    def chunk_count(self) -> int:
        """Return how many chunks can be found."""
        return len(self._index)

    def stamps(self) -> dict[int, int]:
        """Return the stamp of every indexed note by serial, notes without a searchable chunk included."""
        with self._lock:
            return {serial: note.stamp for serial, note in self._notes.items()}

    def apply(self, upserts: Sequence[VectorEntry], removals: Collection[int]) -> None:
        """Forget the notes `removals`, then index `upserts`, replacing what they had.

        Raises `ValueError`, before any change, for vectors that cannot be of this index.
        """
        for entry in upserts:
            self._check(entry)
        if upserts or removals:
            self._dirty = True
            self.last_updated = datetime.now(UTC)
        for serial in removals:
            with self._lock:
                self._forget(serial)
        for part in slice_entries(upserts):
            with self._lock:
                self._put(part)

    def _check(self, entry: VectorEntry) -> None:
        rows = entry.vectors.shape[0]
        if entry.vectors.shape != (rows, self.identity.dims) or rows > MAX_CHUNKS:
            raise ValueError(f"vectors of shape {entry.vectors.shape} do not fit {self.identity}")
        if not np.isfinite(entry.vectors).all():
            raise ValueError(f"vectors of note {entry.serial} are not finite")

    def _forget(self, serial: int) -> None:
        note = self._notes.pop(serial, None)
        if note is not None and note.chunks:
            self._index.remove(keys_of([(serial, note.chunks)]))

    def _put(self, entries: Sequence[VectorEntry]) -> None:
        for entry in entries:
            self._forget(entry.serial)
        keys = keys_of([(entry.serial, len(entry.vectors)) for entry in entries])
        vectors = np.concatenate([entry.vectors for entry in entries])
        searchable = vectors.any(axis=1)
        if searchable.any():
            self._index.add(keys[searchable], vectors[searchable], threads=1)
        self._notes |= {e.serial: _IndexedNote(e.stamp, len(e.vectors)) for e in entries}

    def search(self, vector: Matrix, notes: int, threshold: float) -> list[VectorHit]:
        """Return the `notes` notes nearest to `vector` (dims,), best first, ties by serial.

        A note counts by its best chunk and only from a similarity of `threshold` on. A query of zeros
        finds nothing.
        """
        return self._search(vector, notes, threshold, None)

    def search_among(
        self, vector: Matrix, serials: Collection[int], threshold: float, notes: int | None = None
    ) -> list[VectorHit]:
        """Return what `search` would if only the notes `serials` existed; without `notes`, all of them."""
        if not vector.any():
            return []
        with self._lock:
            sizes = [(s, self._notes[s].chunks) for s in set(serials) if s in self._notes]
            few = sum(chunks for _, chunks in sizes) <= _MAX_FETCHED
            keys, stored = self._fetch(keys_of(sizes)) if few else (None, None)
        if keys is not None and stored is not None:
            query = vector.astype(self.identity.dtype).astype(np.float32)
            # Not `@`: BLAS would start threads, and waiting for them on a busy machine takes milliseconds.
            similarities = np.clip(np.einsum("ij,j->i", stored.astype(np.float32), query), 0, 1)
            return best_per_note(keys, similarities, threshold, notes)
        wanted = np.fromiter((serial for serial, _ in sizes), np.uint64, len(sizes))
        return self._search(vector, len(sizes) if notes is None else notes, threshold, wanted)

    def _search(
        self, vector: Matrix, notes: int, threshold: float, wanted: NDArray[np.uint64] | None
    ) -> list[VectorHit]:
        """Ask for more chunks until `notes` notes are certain, the threshold is passed or all were seen."""
        total = self.chunk_count()
        if notes <= 0 or not total or not vector.any():
            return []
        asked = 3 * notes + 16 if wanted is None else 3 * notes * max(1, len(self._notes) // len(wanted))
        while True:
            keys, similarities = self._nearest(vector, asked)
            if not len(keys):
                return []
            kept = slice(None) if wanted is None else np.isin(keys >> CHUNK_BITS, wanted)
            hits = best_per_note(keys[kept], similarities[kept], threshold, notes)
            last = float(similarities[-1])
            # Chunks not seen yet may tie with the last one seen, hence the strict comparison.
            certain = len(hits) >= notes and hits[notes - 1].similarity > last
            if certain or last < threshold or asked >= total:
                return hits
            asked *= 4

    def _nearest(self, vector: Matrix, count: int) -> tuple[NDArray[np.uint64], Matrix]:
        with self._lock:
            try:
                found = self._index.search(
                    vector, min(count, max(1, len(self._index))), exact=True, threads=1
                )
            except RuntimeError as error:
                raise IndexFailed(f"The vector index cannot be searched: {error}") from error
        return found.keys, np.clip(1 - found.distances, 0, 1)

    def _fetch(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], Matrix]:
        """Return those of `keys` that have a vector, and the vectors as they are stored."""
        found = self._index.get(keys) if len(keys) else ()
        rows = cast(tuple[Matrix | None, ...], found)
        present = np.array([row is not None for row in rows], dtype=bool)
        if not present.any():
            return keys[:0], np.zeros((0, self.identity.dims), np.float32)
        stored = np.concatenate([row for row in rows if row is not None])
        return keys[present], stored.reshape(-1, self.identity.dims)

    def save(self) -> None:
        """Write everything as a new generation, replacing the store in one step; searches wait meanwhile.

        Raises `IndexFailed`; the store on disk is then the one it was.
        """
        rows = np.array([(serial, *note) for serial, note in self._notes.items()], _NOTE_ROW)
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            vector_files.write_generation(
                self._directory,
                self.identity,
                len(self._index),
                self._write_vectors,
                lambda p: np.save(p, rows),
            )
        except (OSError, RuntimeError) as error:
            raise IndexFailed(f"The vector index could not be saved in {self._directory}: {error}") from error
        self._dirty = False

    def _write_vectors(self, path: Path) -> None:
        with self._lock:
            self._index.save(path)

    def close(self) -> None:
        """Let go of the memory; nothing is saved. A search afterwards finds nothing."""
        with self._lock:
            self._index, self._notes = _make_index(self.identity), {}
            self._dirty = False


def stored_identity(directory: Path) -> EmbedderIdentity | None:
    """Return whose vectors the store in `directory` has, `None` when no store of this format is readable."""
    try:
        manifest = vector_files.read_manifest(directory)
    except StoreDamaged:
        return None
    return manifest.embedder if manifest is not None else None


def _make_index(identity: EmbedderIdentity) -> Index:
    dtype = {"float16": "f16", "float32": "f32"}[identity.dtype]
    return Index(
        ndim=identity.dims, metric="ip", dtype=dtype, connectivity=2, expansion_add=1, expansion_search=1
    )
