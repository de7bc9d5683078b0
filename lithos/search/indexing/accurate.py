"""A model of the accurate tier: a second vector index, filled in the background by a transformer.

Every acknowledged note is searchable by its static vectors. The transformer embeds the notes afterwards,
newest first, in one task with one thread. Queries switch to the accurate vectors once `AccurateCoverage` is
high enough. From then on, only notes without current accurate vectors are compared by their static vectors.
At the start the vectors on disk are compared with the notes' stamps, so embedding continues from the last
snapshot. This tier never delays a write. If it fails, the static tier continues to answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import numpy as np
import trio
from attrs import define, field, frozen

from lithos.kernel.actors.threads import BackgroundThread, Threads
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import IndexFailed
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.files import NoteFiles
from lithos.notes.indexing_messages import Upsert
from lithos.search.embedding.embedder import EmbedderUnavailable, Matrix
from lithos.search.index.chunk_rows import VectorEntry
from lithos.search.index.vector_files import read_stamps, write_stamps
from lithos.search.index.vectors import VectorIndex
from lithos.search.indexing.coverage import AccurateCoverage, NoteText, Progress
from lithos.search.indexing.ports import EmbeddedNotes, VectorPort, digest_texts
from lithos.search.indexing.repair import LOOK_SLICE, load_note
from lithos.search.indexing.tiers import TIER, QueryEmbedder, TieredNotes
from lithos.search.ranking.calibrations import STATIC
from lithos.text.chunk import ChunkSizes

log = get_logger("lithos.accurate")

#: Number of chunks embedded per round. A round takes half a second, and its work is lost if the process ends.
CHUNKS_AT_ONCE: Final = 48
#: Number of chunks embedded per call in a thread. A stop must wait for the call, which takes about 60 ms.
CHUNKS_A_CALL: Final = 8
#: Saving takes at most one twentieth of the time. A snapshot takes a second for 50,000 chunks.
SAVE_SHARE: Final = 20.0
SAVE_LEAST: Final = 1.0
#: Seconds after which a few changes are saved.
SAVE_IDLE: Final = 60.0
#: Seconds until a retry after a failure, such as a full disk, an unreadable note or a broken model.
RETRY: Final = 30.0


@frozen(eq=False)
class _Opened:
    """The objects that the accurate tier uses after its model is loaded."""

    notes: TieredNotes
    coverage: AccurateCoverage


@define(eq=False, slots=False)
class AccurateTier:
    """One model of the accurate tier. Fills and saves its vectors, and decides whether queries use them."""

    _port: VectorPort
    _catalogue: Catalogue
    _files: NoteFiles
    #: Load the model. Raises `EmbedderUnavailable`.
    _load: Callable[[], QueryEmbedder]
    _directory: Path
    #: The thread is shared by all vaults of the process.
    _thread: BackgroundThread
    _reading: Threads = field(factory=Threads, init=False)
    _opened: _Opened | None = field(default=None, init=False)
    _token: trio.lowlevel.TrioToken | None = field(default=None, init=False)
    _woken: trio.Event = field(factory=trio.Event, init=False)
    _saved_at: float = field(default=-math.inf, init=False)
    _save_took: float = field(default=0.0, init=False)
    #: Number of chunks embedded since the last save.
    _unsaved: int = field(default=0, init=False)
    #: Time at which a failed save is retried.
    _save_again: float = field(default=-math.inf, init=False)
    #: Reason why the tier cannot be used. None while no problem is known.
    reason: str | None = field(default=None, init=False)
    #: Set once it is known which notes lack vectors, or that the tier cannot be used.
    planned: trio.Event = field(factory=trio.Event, init=False)
    #: Set once waiting no longer helps, because every note is embedded or the tier cannot be used.
    settled: trio.Event = field(factory=trio.Event, init=False)

    @property
    def answering(self) -> TieredNotes | None:
        """Return the accurate vectors if they are used for queries.

        If the static vectors are used, the result is None.
        """
        opened = self._opened
        if opened is None or not opened.coverage.is_enough or self.reason is not None:
            return None
        return opened.notes

    def progress(self) -> Progress:
        """Return the tier that answers queries, and the progress of the accurate tier."""
        target = self._port.target
        total = target.vectors.chunk_total if target is not None else 0
        done, total = self._opened.coverage.counts() if self._opened is not None else (0, total)
        return Progress(STATIC if self.answering is None else TIER, done, total)

    async def run(self) -> None:
        """Background task: load the model, then embed the notes. Never ends if the model can be loaded.

        The static model must be loaded, and its vectors must be complete.
        """
        target = self._port.target
        assert target is not None
        self._token = trio.lowlevel.current_trio_token()
        self._port.on_applied += (self._take_change,)
        try:
            # The background thread must not load the model, because the model's threads would inherit its
            # priority.
            opened = self._opened = await self._reading.run(partial(self._open, target))
        except EmbedderUnavailable as problem:
            self.reason = problem.reason
            self._stop_listening()
            log.error("accurate embeddings unavailable", reason=problem.reason)
            self.planned.set()
            self.settled.set()
            return
        await self._plan(target, opened)
        self.planned.set()
        await self._fill(opened)

    def _stop_listening(self) -> None:
        self._port.on_applied = tuple(each for each in self._port.on_applied if each != self._take_change)

    def _open(self, target: EmbeddedNotes) -> _Opened:
        embedder = self._load()
        try:
            vectors = VectorIndex.open(self._directory, embedder.identity)
        except OSError as failure:
            log.error("accurate vectors cannot be read", reason=str(failure))
            vectors = VectorIndex(self._directory, embedder.identity)
        if vectors.quarantined is not None:
            log.warning("damaged accurate vectors set aside", path=str(vectors.quarantined))
        coverage = AccurateCoverage(lambda: target.vectors.chunk_total, vectors.stamp_of)
        return _Opened(TieredNotes(embedder, vectors, target, coverage.stale, self._note_failure), coverage)

    @property
    def is_saved(self) -> bool:
        """Return whether the last save succeeded and no vector has changed since."""
        return self._opened is not None and not self._opened.notes.vectors.dirty

    def forget(self) -> None:
        """Release the memory without saving. A query that is running may still use the vectors."""
        self._stop_listening()
        self._opened = None

    def _take_change(self, notes: Sequence[NoteText], removals: Sequence[int]) -> None:
        """Record the changes of the static index. The thread of the static index calls this method."""
        if self._opened is not None:
            self._opened.coverage.change(notes, removals)
        assert self._token is not None
        try:
            self._token.run_sync_soon(self._wake)
        except trio.RunFinishedError:
            log.debug("change ignored after the end of the event loop")

    def _note_failure(self, failure: IndexFailed) -> None:
        """Record that the model failed and must be tried again later. Any thread may call this method."""
        log.error("accurate model failed", reason=str(failure))
        self.reason = str(failure)

    def _wake(self) -> None:
        self._woken.set()

    async def _wait(self, until: float) -> None:
        """Wait for a change, but not longer than until the time `until`."""
        with trio.move_on_at(until):
            await self._woken.wait()
        self._woken = trio.Event()

    async def _plan(self, target: EmbeddedNotes, opened: _Opened) -> None:
        """Compare the vectors on disk with the notes, and queue the notes to embed."""
        times = []
        for number, entry in enumerate(self._catalogue):
            if number % LOOK_SLICE == LOOK_SLICE - 1:
                await trio.lowlevel.checkpoint()
            times.append((entry.note.updated_at, entry.serial))

        def compare() -> None:
            coverage, vectors = opened.coverage, opened.notes.vectors
            sizes = target.vectors.sizes()
            order = [serial for _, serial in sorted(times) if serial in sizes]
            notes = [NoteText(serial, *sizes[serial]) for serial in order]
            held = vectors.stamps()
            stamps = read_stamps(self._directory, vectors.generation) if held else {}
            known = {serial: stamp for serial, stamp in stamps.items() if serial in held}
            coverage.plan(notes, known, held.keys() - sizes.keys())

        # Not in the background thread, where the embedding of another model or vault may go on.
        await self._reading.run(compare)
        log.info("accurate embeddings", **attrs.asdict(self.progress()))

    async def _fill(self, opened: _Opened) -> None:
        """Background task: embed notes that lack accurate vectors. Never ends."""
        coverage, vectors = opened.coverage, opened.notes.vectors
        retry = trio.current_time() + RETRY
        while True:
            if self.reason is not None:
                await self._try_again(opened.notes.embedder)
                continue
            try:
                await self._embed(opened, coverage.take(CHUNKS_AT_ONCE))
            except IndexFailed as failure:
                self._note_failure(failure)
                coverage.retry()
                continue
            if coverage.is_complete and not self.settled.is_set():
                log.info("accurate embeddings complete", **attrs.asdict(self.progress()))
                self.settled.set()
            if vectors.dirty and trio.current_time() >= self._save_due():
                await self.save()
            if coverage.is_drained:
                # Time at which the next round is due even if nothing changes.
                again = math.inf if coverage.is_complete else retry
                await self._wait(min(again, self._save_due() if vectors.dirty else math.inf))
            if trio.current_time() >= retry:
                coverage.retry()
                retry = trio.current_time() + RETRY

    async def _try_again(self, embedder: QueryEmbedder) -> None:
        await trio.sleep(RETRY)
        try:
            await self._thread.run(partial(embedder.encode, ["a probe"]))
        except IndexFailed as failure:
            self._note_failure(failure)
        else:
            self.reason = None

    async def _embed(self, opened: _Opened, serials: Sequence[int]) -> None:
        """Update the vectors of these notes. Raises `IndexFailed`."""
        vectors = opened.notes.vectors
        if not serials:
            return
        entries = {serial: self._catalogue.at_serial(serial) for serial in serials}
        gone = [serial for serial, entry in entries.items() if entry is None]
        present = [entry for entry in entries.values() if entry is not None]
        style = self._catalogue.style
        loaded = await self._reading.run(lambda: [load_note(self._files, entry, style) for entry in present])
        upserts = [upsert for upsert in loaded if upsert is not None]
        texts = await self._thread.run(lambda: [_texts_of(self._port.sizes, upsert) for upsert in upserts])
        changed = [
            (upsert.entry.serial, digest, of_note)
            for upsert, (of_note, digest) in zip(upserts, texts, strict=True)
            if vectors.stamp_of(upsert.entry.serial) != digest
        ]
        wanted = [text for *_, of_note in changed for text in of_note]
        rows = await self._encode(opened.notes.embedder, wanted)
        vector_entries, begin = [], 0
        for serial, digest, of_note in changed:
            end = begin + len(of_note)
            vector_entries.append(VectorEntry(serial, digest, rows[begin:end]))
            begin = end
        if vector_entries or gone:
            await self._thread.run(lambda: vectors.apply(vector_entries, gone))
            self._unsaved += len(rows)
        for serial in gone:
            opened.coverage.filled(serial, None)
        for upsert in upserts:
            opened.coverage.filled(upsert.entry.serial, self._port.expected(upsert.entry))

    async def _encode(self, embedder: QueryEmbedder, texts: Sequence[str]) -> Matrix:
        """Return the vectors of these texts.

        Texts of similar length are encoded together, a few at a time.
        """
        rows = np.zeros((len(texts), embedder.identity.dims), np.float32)
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for start in range(0, len(order), CHUNKS_A_CALL):
            some = order[start : start + CHUNKS_A_CALL]
            rows[some] = await self._thread.run(partial(embedder.encode, [texts[i] for i in some]))
        return rows

    def _save_due(self) -> float:
        pause = max(SAVE_LEAST, SAVE_SHARE * self._save_took)
        if self._unsaved <= CHUNKS_AT_ONCE:
            pause = max(pause, SAVE_IDLE)
        return max(self._saved_at + pause, self._save_again)

    async def save(self) -> None:
        """Write a snapshot, from which a later start continues. A failed save is retried later."""
        opened = self._opened
        if opened is None:
            return
        begun = trio.current_time()
        # The stamps are read before the vectors. Every saved stamp then has its vectors in the snapshot.
        stamps = opened.coverage.stamps()
        try:
            await self._thread.run(partial(_save, opened.notes.vectors, self._directory, stamps))
        except (IndexFailed, OSError) as failure:
            log.error("accurate vectors not saved", reason=str(failure), next_try_s=RETRY)
            self._save_again = trio.current_time() + RETRY
            return
        self._saved_at = trio.current_time()
        self._save_took, self._unsaved = self._saved_at - begun, 0

    async def close(self) -> None:
        """Save and release the memory. The background task must have ended before."""
        await self.save()
        self._stop_listening()
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.notes.vectors.close()


def _save(vectors: VectorIndex, directory: Path, stamps: Mapping[int, int]) -> None:
    """Write the vectors and the stamps. Raises `IndexFailed` and `OSError`."""
    if vectors.dirty:
        vectors.save()
    if vectors.generation:
        write_stamps(directory, vectors.generation, stamps)


def _texts_of(sizes: ChunkSizes, upsert: Upsert) -> tuple[list[str], int]:
    """Return the texts of a note that are embedded, and the digest of the texts."""
    chunks = sizes.chunks(upsert.document.note.title, upsert.document.content)
    texts = [chunk.embedded for chunk in chunks]
    return texts, digest_texts(texts)
