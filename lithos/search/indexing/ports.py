"""Adapters from notes to the full-text index and to the vectors.

`FulltextPort` and `VectorPort` implement the `Index` port of the indexers. `VectorPort` has two indexes while
all notes are embedded with another model.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from attrs import frozen

from lithos.kernel.actors.allocator import large_blocks_apart
from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.catalogue.note_records import KeptEntities
from lithos.notes.indexing_messages import Upsert
from lithos.notes.model.note_projects import DEFAULT_RULES, ProjectRules
from lithos.search.embedding.embedder import Embedder, Matrix
from lithos.search.index.chunk_rows import VectorEntry, VectorHit, VectorQuery
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.index.fulltext_schema import FulltextEntry
from lithos.search.index.vectors import VectorIndex
from lithos.search.indexing.coverage import NoteText
from lithos.search.ranking.calibrations import STATIC
from lithos.text.chunk import ChunkSizes, dates_in_words, headings_of
from lithos.text.dates import own_date
from lithos.text.markdown import strip_images
from lithos.text.own_text import has_own_text


class FulltextPort:
    """The `Index` adapter of the full-text index. It converts notes to index documents. All methods block."""

    def __init__(
        self,
        index: FulltextIndex,
        sizes: ChunkSizes,
        entities: KeptEntities,
        projects: ProjectRules = DEFAULT_RULES,
    ) -> None:
        self.index = index
        self._sizes = sizes
        self._entities = entities
        self._projects = projects

    def is_ready(self) -> bool:
        return True

    def expected(self, entry: Entry) -> int:
        return fulltext_stamp(entry, self._entities, self._projects)

    def stamps(self) -> Mapping[int, int]:
        return self.index.stamps()

    def apply(self, upserts: Sequence[Upsert], removals: Sequence[int]) -> None:
        entries = [_index_entry(upsert, self._sizes, self._entities, self._projects) for upsert in upserts]
        with large_blocks_apart():
            self.index.apply(entries, removals)


def fulltext_stamp(entry: Entry, kept: KeptEntities, rules: ProjectRules) -> int:
    """Return the stamp that the full-text index should have for a note.

    It changes with the bytes of the note, its extracted entities, and the projects that the rules give it.
    """
    stamp, _ = kept.stamped(entry.stamp, entry.note)
    return _with_projects(stamp, rules.keys(entry.path, entry.note.extra))


def _with_projects(stamp: int, keys: Sequence[str]) -> int:
    return stamp ^ zlib.crc32("\n".join(keys).encode("utf-8", "surrogatepass")) if keys else stamp


def _index_entry(upsert: Upsert, sizes: ChunkSizes, kept: KeptEntities, rules: ProjectRules) -> FulltextEntry:
    entry, note = upsert.entry, upsert.document.note
    stamp, entities = kept.stamped(entry.stamp, note)
    projects = rules.keys(entry.path, note.extra)
    passages = sizes.chunks(note.title, upsert.document.content)
    body = strip_images(upsert.document.content)
    return FulltextEntry(
        serial=entry.serial,
        stamp=_with_projects(stamp, projects),
        id=note.id,
        title=note.title,
        headings=headings_of(body),
        body=body,
        entities=entities,
        tags=note.all_tags,
        author=note.author,
        path=entry.path,
        namespace=entry.namespace,
        updated_at=note.updated_at,
        passages=tuple(passage.indexed for passage in passages),
        dates=dates_in_words(f"{note.title}\n{upsert.document.content}"),
        aliases=note.aliases,
        own=own_date(note.extra, note.title, entry.path, upsert.document.content),
        projects=projects,
        has_text=has_own_text(upsert.document.content),
    )


def digest_texts(texts: Sequence[str]) -> int:
    """Return a 63-bit hash of the texts. It shows whether these texts are already embedded."""
    digest = hashlib.blake2b(digest_size=8)
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8) + encoded)
    return int.from_bytes(digest.digest()) >> 1


@frozen
class NearestQuery:
    """A query for the `most` notes nearest to the text. With `among`, only these notes are searched."""

    text: str
    most: int
    threshold: float
    among: Sequence[int] | None = None


class SearchableVectors(Protocol):
    """Vectors against which queries can be run. `find` blocks."""

    @property
    def calibration(self) -> str:
        """Return the key of the model in the calibrations of similarities (`ranking/calibrations.py`)."""

    def find(self, wanted: Sequence[NearestQuery]) -> list[list[VectorHit]]:
        """Return the hits of each query, best first. Raises `IndexFailed`."""

    def is_quick(self, wanted: NearestQuery) -> bool:
        """Return whether `find` takes only tenths of a millisecond, so that it may run on the event loop."""


#: Limits for a quick query: chunks to compare, query characters to embed, and notes to rank or look up. Each
#: limit corresponds to 0.3 ms.
QUICK_CHUNKS: Final = 8_192
QUICK_TEXT: Final = 1_000
QUICK_NOTES: Final = 1_000


@frozen
class EmbeddedNotes:
    """A model and its vectors. The vectors are never compared with those of another model."""

    embedder: Embedder
    vectors: VectorIndex
    calibration: str = STATIC

    def find(self, wanted: Sequence[NearestQuery]) -> list[list[VectorHit]]:
        """Return the hits of each query, best first. A text without a known word finds nothing."""
        vectors = self.embedder.encode([each.text for each in wanted])
        return search_all(self.vectors, vectors, wanted)

    def is_quick(self, wanted: NearestQuery) -> bool:
        """Return whether the index has few vectors and the text is not unusually long."""
        return (
            self.vectors.chunk_total <= QUICK_CHUNKS
            and len(wanted.text) <= QUICK_TEXT
            and max(wanted.most, len(wanted.among or ())) <= QUICK_NOTES
        )


def search_all(
    index: VectorIndex, vectors: Sequence[Matrix] | Matrix, wanted: Sequence[NearestQuery], spare: int = 0
) -> list[list[VectorHit]]:
    """Return the hits of each query and up to `spare` more. All queries without `among` share one pass."""
    everywhere = [i for i, each in enumerate(wanted) if each.among is None]
    together = [VectorQuery(vectors[i], wanted[i].most + spare, wanted[i].threshold) for i in everywhere]
    found = dict(zip(everywhere, index.search_together(together), strict=True))
    for i, each in enumerate(wanted):
        if each.among is not None:
            found[i] = index.search_among(vectors[i], each.among, each.threshold, each.most + spare)
    return [found[i] for i in range(len(wanted))]


#: A listener to changed notes and the serials of removed notes.
TakeChange: TypeAlias = Callable[[Sequence[NoteText], Sequence[int]], None]


class VectorPort:
    """The `Index` adapter of the vectors.

    Changes are applied to `target`. `former` answers queries until `target` is complete.

    Until `target` is complete, changes are also applied to `former` (double write). `target` and `former` are
    unset until the model is loaded. Only the event loop changes the two attributes. `apply` runs in a thread.
    """

    def __init__(self, sizes: ChunkSizes) -> None:
        self.sizes = sizes
        self.target: EmbeddedNotes | None = None
        self.former: EmbeddedNotes | None = None
        #: Returns True while another index is also being filled and needs a processor core.
        self.leaves_a_core: Callable[[], bool] = lambda: False
        #: Reason why the vectors lack accepted changes. None if the vectors are current.
        self.behind: str | None = None
        #: Called in the thread of `apply` with the changes of `target`. All other listeners are called later.
        self.on_applied: tuple[TakeChange, ...] = ()

    @property
    def vectors(self) -> VectorIndex | None:
        """Return the index that answers queries. This is `former` if it is set, otherwise `target`."""
        answering = self.former or self.target
        return answering.vectors if answering is not None else None

    def tell_behind(self, reason: str | None) -> None:
        """Record why the vectors are stale, so that searches are refused.

        A reason of None means that the vectors are current.
        """
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
        self._embed(target, upserts, removals, self.on_applied)
        if former is not None:
            held = former.vectors.stamp_of
            news = [upsert for upsert in upserts if held(upsert.entry.serial) != self._stamp(upsert)]
            self._embed(former, news, removals)

    def _embed(
        self,
        notes: EmbeddedNotes,
        upserts: Sequence[Upsert],
        removals: Sequence[int],
        tell: Sequence[TakeChange] = (),
    ) -> None:
        documents = [upsert.document for upsert in upserts]
        chunks = [self.sizes.chunks(document.note.title, document.content) for document in documents]
        texts = [chunk.embedded for of_note in chunks for chunk in of_note]
        vectors = notes.embedder.encode(texts, one_core=self.leaves_a_core())
        entries: list[VectorEntry] = []
        told: list[NoteText] = []
        begin = 0
        for upsert, of_note in zip(upserts, chunks, strict=True):
            end = begin + len(of_note)
            entries.append(VectorEntry(upsert.entry.serial, self._stamp(upsert), vectors[begin:end]))
            if tell:
                digest = digest_texts(texts[begin:end])
                told.append(NoteText(upsert.entry.serial, self._stamp(upsert), end - begin, digest))
            begin = end
        notes.vectors.apply(entries, removals)
        for listener in tell:
            listener(told, removals)

    def _stamp(self, upsert: Upsert) -> int:
        return self.expected(upsert.entry)
