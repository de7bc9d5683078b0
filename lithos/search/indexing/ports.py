"""Adapters from notes to the full-text index and to the vectors, and batched vector queries.

`FulltextPort` and `VectorPort` implement the `Index` port of the indexers. `VectorPort` has two indexes while
all notes are embedded with another model. `VectorQueries` answers queries in a worker thread. It batches
simultaneous queries into one pass, because a pass over all vectors takes as long for four queries as for a
single query. A pass releases the interpreter lock (GIL), and its data displaces all other data from a core's
cache. Meanwhile the event loop runs the full-text query on the other core. The first query starts a pass, and
later queries join the next pass. The same pass embeds the queries, which takes a transformer 2 ms.

If a pass takes less time than a switch to a thread, the event loop runs the pass. The pass then answers all
queries whose hits are awaited in the same turn.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Final, Protocol, TypeAlias

import trio
from attrs import define, field, frozen
from outcome import Error, Outcome, Value, capture

from lithos.kernel.actors.allocator import large_blocks_apart
from lithos.kernel.actors.threads import start_call
from lithos.kernel.values.errors import IndexFailed
from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.catalogue.note_records import KeptEntities
from lithos.notes.indexing_messages import Upsert
from lithos.notes.model.note_projects import DEFAULT_RULES, ProjectRules
from lithos.search.index.chunk_rows import ABREAST, VectorEntry, VectorHit, VectorQuery
from lithos.search.index.embedder import Embedder, Matrix
from lithos.search.index.fulltext import FulltextIndex
from lithos.search.index.fulltext_schema import FulltextEntry
from lithos.search.index.vectors import VectorIndex
from lithos.search.indexing.coverage import NoteText
from lithos.search.ranking.calibrations import STATIC
from lithos.text.chunk import ChunkSizes, dates_in_words, headings_of, spell_dates
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


#: Timeout of a query in seconds. A pass takes a few milliseconds.
PATIENCE: Final = 10.0


@define(eq=False)
class PendingQuery:
    """A running query. The caller can do other work before it awaits the hits."""

    _outcome: Outcome[list[VectorHit]] | None = None
    #: Key of the model that answers in the calibrations. Decided when the query starts.
    calibration: str = field(default=STATIC, kw_only=True)
    #: Callback that answers the query on the event loop. None means that a thread answers.
    _find_here: Callable[[PendingQuery], Awaitable[None]] | None = field(default=None, kw_only=True)
    _answered: trio.Event = field(factory=trio.Event, init=False)

    async def hits(self) -> list[VectorHit]:
        """Return the nearest notes, best first.

        The method may be called once. Raises `IndexFailed` and search errors.
        """
        if self._find_here is not None:
            await self._find_here(self)
        if self._outcome is None:
            with trio.move_on_after(PATIENCE):
                await self._answered.wait()
        if self._outcome is None:
            raise IndexFailed(f"The vector search gave no answer within {PATIENCE:.0f} s. Retry in a moment.")
        return self._outcome.unwrap()

    def answer(self, outcome: Outcome[list[VectorHit]]) -> None:
        """Store the result of the query and wake its caller."""
        self._outcome = outcome
        self._answered.set()


@frozen
class _Waiting:
    notes: SearchableVectors
    wanted: NearestQuery
    asked: PendingQuery


class VectorQueries:
    """Combines waiting queries into one pass at a time (request coalescing).

    Only the event loop may use the object.
    """

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._is_passing = False
        #: Queries that the event loop answers itself, in the turn in which their hits are awaited.
        self._quick: dict[PendingQuery, _Waiting] = {}

    def ask(
        self,
        notes: SearchableVectors,
        text: str,
        most: int,
        threshold: float,
        among: Sequence[int] | None = None,
    ) -> PendingQuery:
        """Start a query for the `most` notes nearest to a text.

        With `among`, only these notes are searched.
        """
        wanted = NearestQuery(spell_dates(text), most, threshold, among)
        if notes.is_quick(wanted):
            return PendingQuery(
                calibration=notes.calibration, find_here=partial(self._find_here, notes, wanted)
            )
        asked = PendingQuery(calibration=notes.calibration)
        self._waiting.append(_Waiting(notes, wanted, asked))
        if not self._is_passing:
            self._start()
        return asked

    async def _find_here(self, notes: SearchableVectors, wanted: NearestQuery, asked: PendingQuery) -> None:
        """Answer a query, together with waiting queries to the same vectors.

        If the query is already answered, nothing is done.
        """
        self._quick[asked] = own = _Waiting(notes, wanted, asked)
        try:
            await trio.lowlevel.checkpoint()
            if asked in self._quick:
                others = (each for each in self._quick.values() if each.notes is notes and each is not own)
                together = [own, *islice(others, ABREAST - 1)]
                outcome = capture(notes.find, [each.wanted for each in together])
                for each, answer in zip(together, _answers(outcome, len(together)), strict=True):
                    del self._quick[each.asked]
                    each.asked.answer(answer)
        finally:
            self._quick.pop(asked, None)

    def _start(self) -> None:
        """Start a pass with all waiting queries that need the same vectors as the first query."""
        notes = self._waiting[0].notes
        together = [each for each in self._waiting if each.notes is notes]
        self._waiting = [each for each in self._waiting if each.notes is not notes]
        self._is_passing = True

        def finish(outcome: Outcome[list[list[VectorHit]]]) -> None:
            self._is_passing = False
            if self._waiting:
                self._start()
            _hand_out(together, outcome)

        start_call(lambda: notes.find([each.wanted for each in together]), finish)


def _hand_out(together: Sequence[_Waiting], outcome: Outcome[list[list[VectorHit]]]) -> None:
    """Pass the results of one pass to its queries, one query per turn of the event loop.

    Each caller ranks its hits, which takes one or two milliseconds. Waking sixteen callers in the same turn
    would make the turn 25 ms long, and a write waits for many turns.
    """
    waiting = list(zip(together, _answers(outcome, len(together)), strict=True))[::-1]
    token = trio.lowlevel.current_trio_token()

    def answer_next() -> None:
        each, answer = waiting.pop()
        each.asked.answer(answer)
        if waiting:
            with suppress(trio.RunFinishedError):  # If the event loop has ended, so have all waiting callers.
                token.run_sync_soon(answer_next)

    answer_next()


def _answers(outcome: Outcome[list[list[VectorHit]]], count: int) -> list[Outcome[list[VectorHit]]]:
    """Divide the outcome of a pass into one outcome for each of its `count` queries."""
    if isinstance(outcome, Error):
        return [Error(outcome.error) for _ in range(count)]
    return [Value(hits) for hits in outcome.unwrap()]
