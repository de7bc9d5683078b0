"""The semantic backend: the embedding model and the vectors made with it.

The model loads in the background; until then changes are deferred, and once it is there the
indexer's comparison brings in whatever is missing. A model that cannot be loaded is a state, not
an error: everything else keeps working.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path

import numpy as np
import trio
from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.actors.catalogue import Entry
from lithos.actors.indexer import Indexer, Upsert
from lithos.core.chunk import Chunk, chunk_text
from lithos.stores.embedder import Embedder, EmbedderUnavailable
from lithos.stores.vectors import VectorEntry, VectorHit, VectorIndex
from lithos.telemetry import get_logger

log = get_logger("lithos.semantic")


class SemanticState(Enum):
    """`WARMING` until every note is embedded once; `DEGRADED` when there is no model."""

    WARMING = "warming"
    OK = "ok"
    DEGRADED = "degraded"


@frozen
class ChunkSizes:
    """`search.chunk_size` and `search.chunk_max`, in characters."""

    size: int
    maximum: int

    def chunks(self, title: str, content: str) -> list[Chunk]:
        """The chunks of a note."""
        return chunk_text(title, content, chunk_size=self.size, chunk_max=self.maximum)

    def mix(self, stamp: int) -> int:
        """A stamp that also changes with the sizes: other sizes, other chunks."""
        digest = hashlib.blake2b(f"{stamp}:{self.size}:{self.maximum}".encode(), digest_size=8).digest()
        return int.from_bytes(digest) >> 1


class VectorPort:
    """The vector index as its indexer sees it."""

    def __init__(self, sizes: ChunkSizes) -> None:
        self.sizes = sizes
        self.embedder: Embedder | None = None
        self.vectors: VectorIndex | None = None

    def is_ready(self) -> bool:
        return self.vectors is not None

    def expected(self, entry: Entry) -> int:
        return self.sizes.mix(entry.stamp)

    def stamps(self) -> Mapping[int, int]:
        assert self.vectors is not None
        return self.vectors.stamps()

    def apply(self, upserts: Sequence[Upsert], removals: Sequence[int]) -> None:
        assert self.vectors is not None
        assert self.embedder is not None
        documents = [upsert.document for upsert in upserts]
        chunks = [self.sizes.chunks(document.note.title, document.content) for document in documents]
        texts = [chunk.embedded for of_note in chunks for chunk in of_note]
        vectors = self.embedder.encode(texts)
        entries: list[VectorEntry] = []
        begin = 0
        for upsert, of_note in zip(upserts, chunks, strict=True):
            end = begin + len(of_note)
            entries.append(VectorEntry(upsert.entry.serial, self.expected(upsert.entry), vectors[begin:end]))
            begin = end
        self.vectors.apply(entries, removals)


class SemanticUnavailable(Exception):
    """No semantic answer now; the message says why."""


class SemanticBackend:
    """Loading, state and queries."""

    def __init__(
        self,
        port: VectorPort,
        blocking: Blocking,
        load: Callable[[], Embedder],
        directory: Path,
        model_name: str,
    ) -> None:
        self.port = port
        self.model_name = model_name
        self._blocking = blocking
        self._load = load
        self._directory = directory
        #: Set once every note is embedded, or the model turned out to be unusable.
        self.settled = trio.Event()
        self.reason: str | None = None

    @property
    def state(self) -> SemanticState:
        """Where it stands now."""
        if self.reason is not None:
            return SemanticState.DEGRADED
        return SemanticState.OK if self.settled.is_set() else SemanticState.WARMING

    @property
    def chunk_count(self) -> int:
        """Vectors in use."""
        return self.port.vectors.chunk_count() if self.port.vectors else 0

    async def load(
        self, indexer: Indexer, after: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
    ) -> None:
        """Load the model, open its vectors and have them brought up to date.

        Whatever is missing is embedded `after` that wait: the two cores of a small machine have
        something to do for the full-text index first, which everybody waits for.
        """
        try:
            embedder, vectors = await self._blocking.run(self._open)
        except EmbedderUnavailable as problem:
            self.reason = indexer.unusable = problem.reason
            log.error("embedding model unavailable", model=self.model_name, reason=self.reason)
            self.settled.set()
            return
        self.port.embedder, self.port.vectors = embedder, vectors
        if vectors.quarantined is not None:
            log.warning("damaged vector store set aside", path=str(vectors.quarantined))
        await after()
        indexer.mark_stale()
        await indexer.converged()
        self.settled.set()
        await self.save()
        log.info("semantic search ready", model=self.model_name, chunks=vectors.chunk_count())

    def _open(self) -> tuple[Embedder, VectorIndex]:
        embedder = self._load()
        return embedder, VectorIndex.open(self._directory, embedder.identity)

    async def save(self) -> None:
        """Write a snapshot if anything changed; it spares the next start the embedding."""
        vectors = self.port.vectors
        if vectors is not None and vectors.dirty:
            await self._blocking.run(vectors.save)

    async def close(self) -> None:
        """Save and close."""
        await self.save()
        if self.port.vectors is not None:
            self.port.vectors.close()

    async def ready(self, *, within: float) -> None:
        """Wait until every note is embedded; raises `SemanticUnavailable`."""
        with trio.move_on_after(within):
            await self.settled.wait()
        self._require()
        if not self.settled.is_set():
            raise SemanticUnavailable(
                "The semantic index is still being built; retry in a moment or use mode fulltext."
            )

    def _require(self) -> None:
        if self.reason is not None:
            raise SemanticUnavailable(
                f"The embedding model {self.model_name!r} cannot be used: {self.reason}. Use mode "
                "fulltext, or set search.embedding_model to 'builtin' and restart."
            )

    def encode(self, query: str) -> np.ndarray | None:
        """The query's vector; None when the model knows none of its words."""
        if self.port.embedder is None:
            self._require()
            raise SemanticUnavailable("The embedding model is still loading; retry in a moment.")
        vector = self.port.embedder.encode([query])[0]
        return vector if vector.any() else None

    def search(self, vector: np.ndarray, notes: int, threshold: float) -> list[VectorHit]:
        """The nearest notes, best first."""
        assert self.port.vectors is not None
        return self.port.vectors.search(vector, notes, threshold)

    def search_among(
        self, vector: np.ndarray, serials: Sequence[int], notes: int, threshold: float
    ) -> list[VectorHit]:
        """The same among given notes only."""
        assert self.port.vectors is not None
        return self.port.vectors.search_among(vector, serials, threshold, notes)
