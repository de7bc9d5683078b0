"""The semantic backend: the embedding model and the vectors made with it.

The model loads in the background; until then changes are deferred, and once it is there the
indexer's comparison adds whatever is missing. A model that cannot be loaded is a state, not
an error: everything else keeps working.

When the vectors on disk are from another model, all notes are embedded again into `next/`, and the
other model answers until then, if it can still be loaded. The complete new vectors replace the old ones in
one step, the renaming of the manifest. If the process ends before that, the old ones remain, and `next/`
is continued later.
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
from lithos.search.index.chunk_rows import Codes, encode_rows
from lithos.search.index.embedder import Embedder, EmbedderIdentity, EmbedderUnavailable
from lithos.search.index.vectors import VectorIndex, stored_identity
from lithos.search.indexing.accurate import AccurateTier
from lithos.search.indexing.coverage import Progress
from lithos.search.indexing.indexer import Indexer
from lithos.search.indexing.ports import (
    EmbeddedNotes,
    PendingQuery,
    SearchableVectors,
    VectorPort,
    VectorQueries,
)
from lithos.search.indexing.tiers import STATIC
from lithos.text.chunk import spell_dates

T = TypeVar("T")

log = get_logger("lithos.semantic")

#: Below the directory of the vectors: those of a new model, until they are complete.
NEXT = "next"


class SemanticState(Enum):
    """`WARMING` until every note is embedded once; `REEMBEDDING` until every note is embedded with a new
    model; `DEGRADED` when there is no model.
    """

    WARMING = "warming"
    REEMBEDDING = "reembedding"
    OK = "ok"
    DEGRADED = "degraded"


class SemanticUnavailable(Exception):
    """Semantic search is unavailable now; the message says why."""


@frozen(eq=False)
class StaticQuestion:
    """The vector of a query, int8 (dims,), and its highest cosine, 0..1, with any chunk of the vault."""

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
    #: The tier above these vectors; None where `search.tier` is `static`.
    accurate: AccurateTier | None = None
    _queries: VectorQueries = field(factory=VectorQueries, init=False)
    _looking: Threads = field(factory=lambda: Threads(2), init=False)
    #: Set once every note is embedded, or the model turned out to be unusable.
    settled: trio.Event = field(factory=trio.Event, init=False)
    #: Set once there is nothing to wait for: it is settled, or notes are embedded with a new model.
    decided: trio.Event = field(factory=trio.Event, init=False)
    _is_switching: bool = field(default=False, init=False)
    reason: str | None = field(default=None, init=False)

    @property
    def state(self) -> SemanticState:
        """The current state, for status and health."""
        if self.reason is not None:
            return SemanticState.DEGRADED
        if self._is_switching:
            return SemanticState.REEMBEDDING
        return SemanticState.OK if self.settled.is_set() else SemanticState.WARMING

    @property
    def is_answering(self) -> bool:
        """Whether a search covers every note now."""
        return self.state is SemanticState.OK or self.port.former is not None

    @property
    def is_accurate(self) -> bool:
        """Whether queries go to the accurate tier now."""
        return self.accurate is not None and self.accurate.answering is not None

    @property
    def chunk_count(self) -> int:
        """Vectors in use."""
        return self.port.vectors.chunk_count() if self.port.vectors else 0

    def progress(self) -> Progress:
        """The tier that answers, and how many chunks of how many it could have."""
        if self.accurate is not None:
            return self.accurate.progress()
        total = self.port.target.vectors.chunk_total if self.port.target else 0
        return Progress(STATIC, 0, total)

    async def load(
        self, indexer: Indexer, after: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
    ) -> None:
        """Background task: after awaiting `after` load the model, open its vectors, bring them up to date."""
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
        if self._is_switching:
            await self._switch(target)
        self.settled.set()
        self.decided.set()
        await self.save()
        log.info("semantic search ready", model=self.model_name, chunks=self.chunk_count)

    def _open(self) -> tuple[EmbeddedNotes, EmbedderIdentity | None]:
        """Open the vectors to bring up to date; with the identity of stored ones of another model."""
        embedder = self._load(self.model_name)
        stored = stored_identity(self._directory)
        following = self._directory / NEXT
        if stored is None or stored == embedder.identity:
            shutil.rmtree(following, ignore_errors=True)  # of a switch that was made, or given up
            vectors = VectorIndex.open(self._directory, embedder.identity)
            return EmbeddedNotes(embedder, vectors), None
        return EmbeddedNotes(embedder, VectorIndex.open(following, embedder.identity)), stored

    def _open_former(self, stored: EmbedderIdentity) -> EmbeddedNotes | None:
        """Open the former model and vectors, which answer until the new ones are complete."""
        try:
            embedder = self._load(stored.name)
        except EmbedderUnavailable as problem:
            log.warning("the former model cannot answer", model=stored.name, reason=problem.reason)
            return None
        if embedder.identity != stored:
            log.warning("the former model cannot answer", model=stored.name, reason="its files have changed")
            return None
        return EmbeddedNotes(embedder, VectorIndex.open(self._directory, stored))

    async def _switch(self, target: EmbeddedNotes) -> None:
        """Switch queries to the new vectors, then replace the old ones on disk."""
        self.port.former = None
        target.vectors.move_to(self._directory)
        self._is_switching = False
        await self.save()
        if not target.vectors.dirty:
            await self._blocking.run(lambda: shutil.rmtree(self._directory / NEXT, ignore_errors=True))

    async def save(self) -> None:
        """Write a snapshot of changed vectors, so that the next start need not embed them again.

        A failure is only logged: the vectors can be rebuilt from the notes.
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
        """Wait until a search covers every note; raises `SemanticUnavailable`."""
        with trio.move_on_after(within):
            await self.decided.wait()
        self._require()
        if not self.is_answering:
            raise SemanticUnavailable(
                "The semantic index is still being built; retry in a moment or use mode fulltext."
            )

    def _require(self) -> None:
        if self.reason is not None:
            raise SemanticUnavailable(
                f"The embedding model {self.model_name!r} cannot be used: {self.reason}. Use mode "
                "fulltext, or set search.embedding_model to 'builtin' and restart."
            )
        if self.port.behind is not None:
            raise SemanticUnavailable(f"The vectors lack notes that they could not take: {self.port.behind}")
        if self._is_switching and self.port.former is None:
            raise SemanticUnavailable(
                f"All notes are being re-embedded with {self.model_name!r}; retry in a few minutes or use "
                "mode fulltext."
            )

    def _answering(self) -> EmbeddedNotes:
        answering = self.port.former or self.port.target
        self._require()
        if answering is None:
            raise SemanticUnavailable("The embedding model is still loading; retry in a moment.")
        return answering

    async def with_static_question(self, query: str, use: Callable[[StaticQuestion], T]) -> T:
        """Return the result of `use` with a query's vector in the static tier, in a worker thread.

        Reads every vector of that tier: a millisecond for 50,000 chunks. Raises `SemanticUnavailable`.
        """
        static = self._answering()

        def look() -> T:
            vector = static.embedder.encode([query])[0]
            nearest = static.vectors.search(vector, 1, 0.0)
            highest = nearest[0].similarity if nearest else 0.0
            return use(StaticQuestion(static.embedder.identity, encode_rows(vector[None])[0], highest))

        return await self._looking.run(look)

    async def similarities(self, query: str, serials: Sequence[int]) -> dict[int, list[float]]:
        """The similarity of each chunk of some notes to a query in the static tier, by serial.

        Notes without vectors are left out. Raises `SemanticUnavailable`.
        """
        static = self._answering()

        def look() -> dict[int, list[float]]:
            return static.vectors.similarities(static.embedder.encode([spell_dates(query)])[0], serials)

        return await self._looking.run(look)

    def nearest_to(self, texts: Sequence[str], notes: int) -> dict[int, float]:
        """The notes nearest to some texts in the static tier: serials with how near they are. Blocks.

        The sum over the texts of the most similar chunk of the note: first `notes` for each text by the mean
        of their chunks, which are then looked at. Raises `SemanticUnavailable`.
        """
        static = self._answering()
        codes = encode_rows(static.embedder.encode(texts, one_core=True))
        near = static.vectors.nearest_by_mean(codes, notes)
        return static.vectors.closeness(codes, {hit.serial for hits in near for hit in hits})

    async def static_codes(self, texts: Sequence[str]) -> StaticTexts:
        """The vectors of texts in the static tier; raises `SemanticUnavailable`."""
        static = self._answering()
        codes = await self._looking.run(lambda: encode_rows(static.embedder.encode(texts, one_core=True)))
        return StaticTexts(static.embedder.identity, codes)

    def static_vectors(self) -> VectorIndex:
        """The vectors of the static tier; raises `SemanticUnavailable`."""
        return self._answering().vectors

    def static_identity(self) -> EmbedderIdentity:
        """The embedder of the static tier; raises `SemanticUnavailable`."""
        return self._answering().embedder.identity

    def ask(
        self, query: str, notes: int, threshold: float, among: Sequence[int] | None = None
    ) -> PendingQuery:
        """Start a nearest-neighbour query for notes, of `among` where they are given; returns its future.

        The tier that answers is the one in use now. A query without a word that the static model knows
        finds nothing there. Raises `SemanticUnavailable`.
        """
        static = self._answering()
        accurate = self.accurate.answering if self.accurate is not None else None
        searched: SearchableVectors = static if accurate is None else accurate
        return self._queries.ask(searched, query, notes, threshold, among)
