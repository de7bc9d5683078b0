"""The vectors as their indexer sees them: one index, or two while notes are embedded with another model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from lithos.actors.catalogue import Entry
from lithos.actors.indexer import Upsert
from lithos.core.chunk import Chunk, chunk_text
from lithos.stores.embedder import Embedder
from lithos.stores.vectors import VectorEntry, VectorIndex


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


@frozen
class EmbeddedNotes:
    """A model and the vectors made with it, which are never compared with those of another."""

    embedder: Embedder
    vectors: VectorIndex


class VectorPort:
    """`target` is brought up to date; `former` answers until then, and gets what is written meanwhile.

    Both are None before the model is loaded. Only the event loop changes them; `apply` runs in a thread.
    """

    def __init__(self, sizes: ChunkSizes) -> None:
        self.sizes = sizes
        self.target: EmbeddedNotes | None = None
        self.former: EmbeddedNotes | None = None
        #: True while another index is being filled too, and needs a core for that.
        self.leaves_a_core: Callable[[], bool] = lambda: False
        #: Why the vectors lack changes that were accepted, if they do.
        self.behind: str | None = None

    @property
    def vectors(self) -> VectorIndex | None:
        """The index that answers."""
        answering = self.former or self.target
        return answering.vectors if answering is not None else None

    def tell_behind(self, reason: str | None) -> None:
        """Searches must not be silently stale; None: they are not."""
        self.behind = reason

    def is_ready(self) -> bool:
        return self.target is not None

    def expected(self, entry: Entry) -> int:
        return self.sizes.mix(entry.stamp)

    def stamps(self) -> Mapping[int, int]:
        assert self.target is not None
        return self.target.vectors.stamps()

    def apply(self, upserts: Sequence[Upsert], removals: Sequence[int]) -> None:
        target, former = self.target, self.former
        assert target is not None
        self._embed(target, upserts, removals)
        if former is not None:
            held = former.vectors.stamps()
            news = [upsert for upsert in upserts if held.get(upsert.entry.serial) != self._stamp(upsert)]
            self._embed(former, news, removals)

    def _embed(self, notes: EmbeddedNotes, upserts: Sequence[Upsert], removals: Sequence[int]) -> None:
        documents = [upsert.document for upsert in upserts]
        chunks = [self.sizes.chunks(document.note.title, document.content) for document in documents]
        texts = [chunk.embedded for of_note in chunks for chunk in of_note]
        vectors = notes.embedder.encode(texts, one_core=self.leaves_a_core())
        entries: list[VectorEntry] = []
        begin = 0
        for upsert, of_note in zip(upserts, chunks, strict=True):
            end = begin + len(of_note)
            entries.append(VectorEntry(upsert.entry.serial, self._stamp(upsert), vectors[begin:end]))
            begin = end
        notes.vectors.apply(entries, removals)

    def _stamp(self, upsert: Upsert) -> int:
        return self.expected(upsert.entry)
