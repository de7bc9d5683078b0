"""The semantic backend: the embedding model and its vectors.

The model loads in the background. Changes are deferred until the model is loaded. The indexer's comparison
then adds everything that is missing. If the model cannot be loaded, the backend reports this as its state and
raises no error. All other parts of the server keep working.

If the vectors on disk belong to another model, all notes are embedded again into `next/`. Meanwhile the
former model answers queries, if it can still be loaded. When the new vectors are complete, renaming the
manifest replaces the old vectors in one step. If the process ends before that, the old vectors remain and the
next start continues with `next/`.
"""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TypeVar

import trio
from attrs import define, field, frozen

from lithos.kernel.actors.threads import Blocking, Threads
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import IndexFailed
from lithos.search.embedding.embedder import Embedder, EmbedderIdentity, EmbedderUnavailable, loadable_name
from lithos.search.index.chunk_rows import Codes, encode_rows
from lithos.search.index.vectors import VectorIndex, stored_identity
from lithos.search.indexing.accurate_models import AccurateModels
from lithos.search.indexing.coverage import Progress
from lithos.search.indexing.indexer import Indexer
from lithos.search.indexing.ports import (
    EmbeddedNotes,
    SearchableVectors,
    VectorPort,
)
from lithos.search.indexing.vector_queries import PendingQuery, VectorQueries
from lithos.search.ranking.calibrations import STATIC
from lithos.text.chunk import spell_dates

T = TypeVar("T")

log = get_logger("lithos.semantic")

#: Subdirectory for the vectors of a new model, until they are complete.
NEXT = "next"


class SemanticState(Enum):
    """The state of semantic search.

    The state is `WARMING` until every note is embedded for the first time. It is `REEMBEDDING` until every
    note is embedded with a new model, and `DEGRADED` without a model.
    """

    WARMING = "warming"
    REEMBEDDING = "reembedding"
    OK = "ok"
    DEGRADED = "degraded"


class SemanticUnavailable(Exception):
    """The error raised if semantic search is unavailable at the moment. The message has the reason."""


@frozen(eq=False)
class StaticQuestion:
    """The vector of a query, int8 (dims,), and its highest cosine (0..1) with any chunk of the vault."""

    embedder: EmbedderIdentity
    codes: Codes
    highest: float


@frozen(eq=False)
class StaticTexts:
    """The vectors of texts, int8 (texts, dims)."""

    embedder: EmbedderIdentity
    codes: Codes


@define(eq=False, slots=False)
class SemanticBackend:
    """The embedding model and its vectors: loading, re-embedding, state, snapshots and queries."""

    port: VectorPort
    _blocking: Blocking
    _load: Callable[[str], Embedder]
    _directory: Path
    model_name: str
    #: The accurate tier. None if `search.tier` is `static`.
    accurate: AccurateModels | None = None
    _queries: VectorQueries = field(factory=VectorQueries, init=False)
    _looking: Threads = field(factory=lambda: Threads(2), init=False)
    #: Set once every note is embedded, or once the model cannot be used.
    settled: trio.Event = field(factory=trio.Event, init=False)
    #: Set once waiting no longer helps: after `settled`, or while notes are embedded with a new model.
    decided: trio.Event = field(factory=trio.Event, init=False)
    _is_switching: bool = field(default=False, init=False)
    #: True once the vectors of the model cover every note. They answer while they are being saved.
    _is_complete: bool = field(default=False, init=False)
    reason: str | None = field(default=None, init=False)

    @property
    def state(self) -> SemanticState:
        """Return the current state, for status and health."""
        if self.reason is not None:
            return SemanticState.DEGRADED
        if self._is_switching:
            return SemanticState.REEMBEDDING
        return SemanticState.OK if self._is_complete else SemanticState.WARMING

    @property
    def is_answering(self) -> bool:
        """Return whether a semantic search covers every note now."""
        return self.state is SemanticState.OK or self.port.former is not None

    @property
    def calibration(self) -> str:
        """Return the key of the model that answers queries now in the calibrations."""
        accurate = self.accurate.answering if self.accurate is not None else None
        return STATIC if accurate is None else accurate.calibration

    @property
    def chunk_count(self) -> int:
        """Return the number of vectors in use."""
        return self.port.vectors.chunk_count() if self.port.vectors else 0

    def progress(self) -> Progress:
        """Return the tier that answers queries, with the numbers of embedded chunks and of all chunks."""
        if self.accurate is not None:
            return self.accurate.progress()
        total = self.port.target.vectors.chunk_total if self.port.target else 0
        return Progress(STATIC, 0, total)

    async def load(
        self, indexer: Indexer, after: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
    ) -> None:
        """Background task: await `after`, then load the model, open its vectors and update them."""
        await after()
        try:
            target, stored = await self._blocking.run(self._open)
        except EmbedderUnavailable as problem:
            self.reason = indexer.unusable = problem.reason
            log.error("embedding model unavailable", model=self.model_name, reason=self.reason)
            self.settled.set()
            self.decided.set()
            return
        former = None
        if stored is not None:
            self._is_switching = True
            log.info("embedding all notes again", model=self.model_name, former=stored.name)
            former = await self._blocking.run(partial(self._open_former, stored))
        self.port.target, self.port.former = target, former
        if self._is_switching:
            self.decided.set()
        if target.vectors.quarantined is not None:
            log.warning("damaged vector store set aside", path=str(target.vectors.quarantined))
        indexer.mark_stale()
        await indexer.converged()
        self._is_complete = True
        if self._is_switching:
            await self._switch(target)
        self.settled.set()
        self.decided.set()
        await self.save()
        log.info("semantic search ready", model=self.model_name, chunks=self.chunk_count)

    def _open(self) -> tuple[EmbeddedNotes, EmbedderIdentity | None]:
        """Open the vectors that must be updated.

        The result also has the identity of the stored vectors if they belong to another model.
        """
        embedder = self._load(self.model_name)
        stored = stored_identity(self._directory)
        following = self._directory / NEXT
        if stored is None or stored == embedder.identity:
            shutil.rmtree(following, ignore_errors=True)  # Remains from a completed or abandoned switch.
            vectors = VectorIndex.open(self._directory, embedder.identity)
            return EmbeddedNotes(embedder, vectors), None
        return EmbeddedNotes(embedder, VectorIndex.open(following, embedder.identity)), stored

    def _open_former(self, stored: EmbedderIdentity) -> EmbeddedNotes | None:
        """Open the former model and its vectors. They answer queries until the new vectors are complete."""
        try:
            embedder = self._load(loadable_name(stored))
        except EmbedderUnavailable as problem:
            log.warning("former model unavailable", model=stored.name, reason=problem.reason)
            return None
        if embedder.identity != stored:
            log.warning("former model unavailable", model=stored.name, reason="model files changed")
            return None
        return EmbeddedNotes(embedder, VectorIndex.open(self._directory, stored))

    async def _switch(self, target: EmbeddedNotes) -> None:
        """Let the new vectors answer queries, then replace the old vectors on disk."""
        self.port.former = None
        target.vectors.move_to(self._directory)
        self._is_switching = False
        await self.save()
        if not target.vectors.dirty:
            await self._blocking.run(lambda: shutil.rmtree(self._directory / NEXT, ignore_errors=True))

    async def save(self) -> None:
        """Write a snapshot of changed vectors. The next start then need not embed these notes again.

        A failure is only logged, because the vectors can be rebuilt from the notes.
        """
        for notes in (self.port.former, self.port.target):
            if notes is None or not notes.vectors.dirty:
                continue
            try:
                await self._blocking.run(notes.vectors.save)
            except IndexFailed as failure:
                log.error("vectors not saved", reason=str(failure))

    async def close(self) -> None:
        """Save and close."""
        if self.accurate is not None:
            await self.accurate.close()
        await self.save()
        for notes in (self.port.former, self.port.target):
            if notes is not None:
                notes.vectors.close()

    async def ready(self, *, within: float) -> None:
        """Wait until a semantic search covers every note. Raises `SemanticUnavailable`."""
        with trio.move_on_after(within):
            await self.decided.wait()
        self._require()
        if not self.is_answering:
            raise SemanticUnavailable(
                "The semantic index is still being built. Retry in a moment, or use mode fulltext."
            )

    def _require(self) -> None:
        if self.reason is not None:
            raise SemanticUnavailable(
                f"The embedding model {self.model_name!r} cannot be used: {self.reason}. Use mode "
                "fulltext, or set search.embedding_model to 'builtin' and restart."
            )
        if self.port.behind is not None:
            raise SemanticUnavailable(f"The semantic index lacks some notes: {self.port.behind}")
        if self._is_switching and self.port.former is None:
            raise SemanticUnavailable(
                f"All notes are being embedded again with {self.model_name!r}. Retry in a few "
                "minutes, or use mode fulltext."
            )

    def _answering(self) -> EmbeddedNotes:
        answering = self.port.former or self.port.target
        self._require()
        if answering is None:
            raise SemanticUnavailable("The embedding model is still loading. Retry in a moment.")
        return answering

    async def with_static_question(self, query: str, use: Callable[[StaticQuestion], T]) -> T:
        """Call `use` with a query's vector in the static tier and return the result.

        `use` is called in a worker thread.

        The method reads every vector of the static tier, which takes 1 ms for 50,000 chunks. Raises
        `SemanticUnavailable`.
        """
        static = self._answering()

        def look() -> T:
            vector = static.embedder.encode([query])[0]
            nearest = static.vectors.search(vector, 1, 0.0)
            highest = nearest[0].similarity if nearest else 0.0
            return use(StaticQuestion(static.embedder.identity, encode_rows(vector[None])[0], highest))

        return await self._looking.run(look)

    async def similarities(self, query: str, serials: Sequence[int]) -> dict[int, list[float]]:
        """Return the similarities of the chunks of some notes to a query in the static tier, by serial.

        Notes without vectors are left out. Raises `SemanticUnavailable`.
        """
        static = self._answering()

        def look() -> dict[int, list[float]]:
            return static.vectors.similarities(static.embedder.encode([spell_dates(query)])[0], serials)

        return await self._looking.run(look)

    def nearest_to(self, texts: Sequence[str], notes: int) -> dict[int, float]:
        """Return the closeness of the notes nearest to some texts in the static tier, by serial.

        Blocks.

        The closeness of a note is the sum of one similarity per text: that of the most similar chunk of the
        note. The candidates are the `notes` notes per text whose mean vectors are nearest. Raises
        `SemanticUnavailable`.
        """
        static = self._answering()
        codes = encode_rows(static.embedder.encode(texts, one_core=True))
        near = static.vectors.nearest_by_mean(codes, notes)
        return static.vectors.closeness(codes, {hit.serial for hits in near for hit in hits})

    async def static_codes(self, texts: Sequence[str]) -> StaticTexts:
        """Return the vectors of texts in the static tier. Raises `SemanticUnavailable`."""
        static = self._answering()
        codes = await self._looking.run(lambda: encode_rows(static.embedder.encode(texts, one_core=True)))
        return StaticTexts(static.embedder.identity, codes)

    def static_vectors(self) -> VectorIndex:
        """Return the vectors of the static tier. Raises `SemanticUnavailable`."""
        return self._answering().vectors

    def static_identity(self) -> EmbedderIdentity:
        """Return the embedder identity of the static tier. Raises `SemanticUnavailable`."""
        return self._answering().embedder.identity

    def ask(
        self, query: str, notes: int, threshold: float, among: Sequence[int] | None = None
    ) -> PendingQuery:
        """Start a nearest-neighbour query and return it. With `among`, only these notes are searched.

        The current tier answers the query. In the static tier, a query without a known word finds nothing.
        Raises `SemanticUnavailable`.
        """
        static = self._answering()
        accurate = self.accurate.answering if self.accurate is not None else None
        searched: SearchableVectors = static if accurate is None else accurate
        return self._queries.ask(searched, query, notes, threshold, among)
