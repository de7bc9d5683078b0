"""The vector store: the chunk vectors of one embedder by note, with nearest-neighbour search and snapshots.

Searches compare the query with all vectors, so no near note is missed. In memory the vectors are one matrix
(`chunk_rows`). On disk they are a usearch index with the smallest possible graph. `bench/experiments.md`
explains why usearch is not used for searching.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, cast

import numpy as np
from numpy.typing import NDArray

from lithos.kernel.databases.private_files import PRIVATE_FOLDER
from lithos.kernel.values.errors import IndexFailed
from lithos.search.embedding.embedder import EmbedderIdentity, Matrix
from lithos.search.index import vector_files
from lithos.search.index.chunk_rows import (
    ABREAST,
    MAX_CHUNKS,
    ChunkRows,
    Codes,
    IndexedNote,
    VectorEntry,
    VectorHit,
    VectorQuery,
    best_per_note,
    choose_least,
    encode_rows,
    keys_of,
    rows_of,
    slice_entries,
    slice_notes,
)
from lithos.search.index.mean_vectors import NoteMeans
from lithos.search.index.vector_files import StoreDamaged

if TYPE_CHECKING:
    from usearch.index import Index

_NOTE_ROW: Final = np.dtype([("serial", np.uint64), ("stamp", np.uint64), ("chunks", np.uint64)])


class _Turnstile:
    """A fair lock.

    A waiting thread gets the lock next, even if the thread that releases it requests it again.
    """

    def __init__(self) -> None:
        self._next = threading.Lock()
        self._inside = threading.Lock()

    def __enter__(self) -> None:
        with self._next:
            self._inside.acquire()

    def __exit__(self, *_: object) -> None:
        self._inside.release()


class VectorIndex:
    """The chunk vectors of one embedder.

    Only one thread at a time may call `apply`, `save` and `close`. Any thread may search meanwhile and waits
    at most about a millisecond, even during `save`. A search sees either all old chunks of a note or all new
    chunks, never a mixture. Only `save` writes to disk.
    """

    def __init__(self, directory: Path, identity: EmbedderIdentity) -> None:
        """Create an empty index. Use `open` to load the snapshot on disk."""
        self.identity = identity
        self.quarantined: Path | None = None
        self.quarantine_reason: str | None = None
        self.last_updated: datetime | None = None
        self._directory = directory
        self._lock = _Turnstile()
        self._notes: dict[int, IndexedNote] = {}
        self._rows = ChunkRows(identity.dims)
        self._means = NoteMeans(identity.dims)
        #: Whether there are changes that `save` must write.
        self.dirty = True
        #: Number of chunks of all notes, including rows of zeros, which no search finds.
        self.chunk_total = 0
        #: Generation of the snapshot that was last loaded or saved. 0 if there is no snapshot.
        self.generation = 0

    @classmethod
    def open(cls, directory: Path, identity: EmbedderIdentity) -> Self:
        """Load the store of `identity` in `directory`. Create the directory if it is missing.

        A store of another identity or format is left unchanged, and the index is empty at first. `save` then
        replaces the store. A damaged store is quarantined (`quarantined`, `quarantine_reason`), and
        the index is empty at first.
        """
        directory.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
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
        vectors_path = self._directory / vector_files.vectors_name(manifest.generation)
        index = _make_index(self.identity)
        try:
            index.load(vectors_path)
        except RuntimeError as error:
            raise StoreDamaged(vectors_path, f"cannot be loaded ({error})") from error
        if len(index) != manifest.chunks or index.ndim != self.identity.dims:
            raise StoreDamaged(vectors_path, f"has {len(index)} chunks instead of {manifest.chunks}")
        rows = np.load(self._directory / vector_files.notes_name(manifest.generation), allow_pickle=False)
        self._fill(index, rows.tolist())
        self.dirty, self.generation = False, manifest.generation
        written = (self._directory / vector_files.MANIFEST).stat().st_mtime
        self.last_updated = datetime.fromtimestamp(written, UTC)

    def _fill(self, index: Index, notes: Sequence[tuple[int, int, int]]) -> None:
        """Add notes (serial, stamp, chunks) with their quantised vectors from a usearch index, in slices."""
        self._rows.reserve(sum(chunks for _, _, chunks in notes))
        for part in slice_notes(notes):
            keys = keys_of([(serial, chunks) for serial, _, chunks in part])
            found = cast(tuple[Codes | None, ...], index.get(keys) if len(keys) else ())
            nothing = np.zeros(self.identity.dims, np.int8)
            rows = [nothing if row is None else row.ravel() for row in found]
            codes = np.concatenate(rows) if rows else nothing[:0]
            self.adopt(part, codes.reshape(-1, self.identity.dims))

    def adopt(self, notes: Sequence[tuple[int, int, int]], codes: Codes) -> None:
        """Add new notes (serial, stamp, chunks). `codes` has the quantised rows of all notes.

        The method must be called before any other use of the index.
        """
        start = self._rows.append([(serial, chunks) for serial, _, chunks in notes], codes)
        for serial, stamp, chunks in notes:
            self._notes[serial] = IndexedNote(stamp, chunks, start)
            start += chunks
        self.chunk_total += len(codes)

    def chunk_count(self) -> int:
        """Return the number of chunks that a search can find."""
        return self._rows.found

    def stamps(self) -> dict[int, int]:
        """Return the stamp of every indexed note by serial, including notes without searchable chunks."""
        with self._lock:
            return {serial: note.stamp for serial, note in self._notes.items()}

    def sizes(self) -> dict[int, tuple[int, int]]:
        """Return the stamp and number of chunks of every indexed note by serial."""
        with self._lock:
            return {serial: (note.stamp, note.chunks) for serial, note in self._notes.items()}

    def stamp_of(self, serial: int) -> int | None:
        """Return the stamp of an indexed note. Return None for an unknown note."""
        return note.stamp if (note := self._notes.get(serial)) is not None else None

    def apply(self, upserts: Sequence[VectorEntry], removals: Collection[int]) -> None:
        """Delete the notes `removals`, then add or replace the notes `upserts` with all their chunks.

        Raises `ValueError` for vectors of a wrong shape and for values that are not finite. Nothing is
        changed then.
        """
        for entry in upserts:
            self._check(entry)
        if upserts or removals:
            self.dirty = True
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
        if note is not None:
            self._rows.free(note.start, note.chunks)
            self._means.forget(serial)
            self.chunk_total -= note.chunks

    def _put(self, entries: Sequence[VectorEntry]) -> None:
        for entry in entries:
            self._forget(entry.serial)
            codes = encode_rows(entry.vectors)
            start = self._rows.put(entry.serial, codes)
            self._means.put(entry.serial, codes)
            self._notes[entry.serial] = IndexedNote(entry.stamp, len(entry.vectors), start)
            self.chunk_total += len(entry.vectors)

    def search(self, vector: Matrix, notes: int, threshold: float) -> list[VectorHit]:
        """Return at most `notes` notes nearest to `vector` (dims,), best first. Ties are ordered by serial.

        The rank of a note depends on its best chunk, whose similarity must be at least `threshold`. A query
        of zeros finds nothing.
        """
        return self.search_together([VectorQuery(vector, notes, threshold)])[0]

    def search_together(self, queries: Sequence[VectorQuery]) -> list[list[VectorHit]]:
        """Return the hits of each query. A batched search takes much less time than separate searches."""
        found: list[list[VectorHit]] = [[] for _ in queries]
        asking = [i for i, query in enumerate(queries) if query.notes > 0 and query.vector.any()]
        for start in range(0, len(asking), ABREAST):
            some = asking[start : start + ABREAST]
            codes = encode_rows(np.stack([queries[i].vector for i in some]))
            with self._lock:
                for i, similarities in zip(some, self._rows.compare(codes), strict=True):
                    found[i] = self._rank(similarities, None, queries[i].threshold, queries[i].notes)
        return found

    def nearest_by_mean(self, queries: Codes, most: int) -> list[list[VectorHit]]:
        """Return the notes whose mean vectors are nearest to each query (queries, dims), best first.

        The search by means is for callers that examine the best notes more closely afterwards. It takes a
        fifth of the time of comparing all chunks. The means are computed at the first call and stored.
        """
        self._means.fill(self._lock, self._notes, self._rows)
        found: list[list[VectorHit]] = []
        for start in range(0, len(queries), ABREAST):
            with self._lock:
                found += self._means.nearest(queries[start : start + ABREAST], most)
        return found

    def closeness(self, queries: Codes, serials: Collection[int]) -> dict[int, float]:
        """Return by serial how close notes are to several queries.

        The closeness of a note is the sum of the similarities of its best chunks.
        """
        with self._lock:
            known = [(each, self._notes[each]) for each in sorted(set(serials)) if each in self._notes]
            known = [(serial, note) for serial, note in known if note.chunks]
            if not known or not len(queries):
                return {}
            rows = rows_of([(note.start, note.chunks) for _, note in known])
            similarities = self._rows.compare_together(queries, rows)
        starts = np.cumsum([0, *(note.chunks for _, note in known[:-1])])
        nearness = np.maximum.reduceat(similarities, starts, axis=0).sum(axis=1).tolist()
        return {serial: value for (serial, _), value in zip(known, nearness, strict=True)}

    def passages_of(self, serial: int, most: int) -> Codes:
        """Return the quantised vectors of a note: its mean, then at most `most` of its passages.

        The passages are spread over the note.

        Returns no rows for an unknown note.
        """
        self._means.fill(self._lock, self._notes, self._rows)
        with self._lock:
            note = self._notes.get(serial)
            if note is None:
                return np.zeros((0, self.identity.dims), np.int8)
            own = self._rows.codes(note.start, note.chunks)
            number = min(note.chunks, most)
            places = [place * note.chunks // number for place in range(number)]
            return np.concatenate([self._means.of(serial), own[places]])

    def search_among(
        self, vector: Matrix, serials: Collection[int], threshold: float, notes: int | None = None
    ) -> list[VectorHit]:
        """Return the result of `search` restricted to the notes `serials`.

        All hits are returned if `notes` is None.
        """
        if not vector.any():
            return []
        query = encode_rows(vector[None, :])[0]
        with self._lock:
            known = (self._notes.get(serial) for serial in set(serials))
            rows = rows_of([(note.start, note.chunks) for note in known if note is not None])
            return self._rank(self._rows.compare_some(query, rows), rows, threshold, notes)

    def similarities(self, vector: Matrix, serials: Collection[int]) -> dict[int, list[float]]:
        """Return the similarity (0..1) to `vector` of each chunk of some notes.

        Chunks that cannot be found get 0.
        """
        if not vector.any():
            return {}
        query = encode_rows(vector[None, :])[0]
        with self._lock:
            known = [
                (serial, self._notes[serial]) for serial in sorted(set(serials)) if serial in self._notes
            ]
            rows = rows_of([(note.start, note.chunks) for _, note in known])
            found: list[float] = np.nan_to_num(self._rows.compare_some(query, rows)).tolist()
        result: dict[int, list[float]] = {}
        begin = 0
        for serial, note in known:
            result[serial] = found[begin : begin + note.chunks]
            begin += note.chunks
        return result

    def _rank(
        self, similarities: Matrix, rows: NDArray[np.intp] | None, threshold: float, notes: int | None
    ) -> list[VectorHit]:
        """Return the best notes from their rows. If `rows` is None, all rows are ranked.

        More candidates are ranked until the best `notes` notes are certain.
        """
        looked_at = len(similarities) if notes is None else 2 * notes + 64
        while True:
            # All chunks above this cut-off are ranked, so the best notes among these chunks are the best of
            # all.
            least = choose_least(similarities, threshold, looked_at)
            best = np.flatnonzero(similarities >= least)
            serials, chunks = self._rows.owners(best if rows is None else rows[best])
            hits = best_per_note(serials, chunks, similarities[best], notes)
            if least <= threshold or (notes is not None and len(hits) >= notes):
                return hits
            looked_at *= 4

    def save(self) -> None:
        """Write a snapshot as a new generation. It replaces the stored snapshot atomically.

        Raises `IndexFailed`. The store on disk is then unchanged.
        """
        notes = [(serial, note.stamp, note.chunks) for serial, note in self._notes.items()]
        rows = np.array(notes, _NOTE_ROW)
        try:
            self._directory.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            written = vector_files.write_generation(
                self._directory,
                self.identity,
                self._rows.found,
                self._write_vectors,
                lambda p: np.save(p, rows),
            )
        except (OSError, RuntimeError) as error:
            raise IndexFailed(f"The vector index could not be saved in {self._directory}: {error}") from error
        self.dirty, self.generation = False, written.generation

    def _write_vectors(self, path: Path) -> None:
        index = _make_index(self.identity)
        notes = [(serial, note.start, note.chunks) for serial, note in self._notes.items()]
        for part in slice_notes(notes):
            codes = np.concatenate([self._rows.codes(start, chunks) for _, start, chunks in part])
            keys = keys_of([(serial, chunks) for serial, _, chunks in part])
            searchable = codes.any(axis=1)
            if searchable.any():
                index.add(keys[searchable], codes[searchable], threads=1)
        index.save(path)

    def move_to(self, directory: Path) -> None:
        """Make the next `save` write to another directory.

        A store there is replaced, even a store of another model.
        """
        self._directory, self.dirty = directory, True

    def close(self) -> None:
        """Release the memory without saving. Later searches find nothing."""
        with self._lock:
            self._rows, self._notes = ChunkRows(self.identity.dims), {}
            self._means = NoteMeans(self.identity.dims)
            self.dirty, self.chunk_total = False, 0


def stored_identity(directory: Path) -> EmbedderIdentity | None:
    """Return the embedder identity of the store in `directory`.

    Return `None` if no store of this format is readable.
    """
    try:
        manifest = vector_files.read_manifest(directory)
    except StoreDamaged:
        return None
    return manifest.embedder if manifest is not None else None


def load_cpp_runtime() -> None:
    """Load the system's C++ runtime. This function must be called before usearch is first imported.

    usearch includes its own C++ runtime, and all libraries use the runtime that was loaded first. If the
    runtime of usearch is loaded first, a later import of onnxruntime ends the process (SIGSEGV).
    """
    with suppress(OSError):
        ctypes.CDLL("libstdc++.so.6", mode=ctypes.RTLD_GLOBAL)


def _make_index(identity: EmbedderIdentity) -> Index:
    load_cpp_runtime()
    from usearch.index import Index  # noqa: PLC0415 - slow to import, and only for what is on disk

    return Index(
        ndim=identity.dims, metric="ip", dtype="i8", connectivity=2, expansion_add=1, expansion_search=1
    )
