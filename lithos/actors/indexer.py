"""An indexer: the one actor that changes one search index.

It applies what the writer passes on, batch by batch, in a worker thread. A failing index refuses
the batch but stays alive; `converge` then compares what the index holds with what it should hold
and mends the difference. A cold start is the same comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Protocol

import trio
from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.actors.catalogue import Catalogue, Entry, digest_of
from lithos.actors.kit import ActorDown, Inbox, Mailbox, ShuttingDown, run_batches
from lithos.core.frontmatter import UnreadableNote, parse_document
from lithos.core.model import Document
from lithos.core.note_layout import read_layout
from lithos.core.plan import plan_index
from lithos.core.times import from_nanoseconds
from lithos.stores.files import NoteFiles, OutsideKnowledge
from lithos.stores.index_failure import IndexFailed
from lithos.telemetry import get_logger

log = get_logger("lithos.indexer")

#: Twice the writer's batch for two writers' worth of changes, with room for repairs.
CAPACITY = 256
BATCH = 64
#: Notes of a repair at once: few, so that a write never waits long behind a rebuild.
REPAIR_SLICE = 64
REPAIR_DELAY = 5.0
#: Notes compared in one turn of the event loop: a few milliseconds.
LOOK_SLICE = 1_000


class Indexed(Enum):
    """What became of a change: `DONE` is searchable, `DEFERRED` waits for the embedding model."""

    DONE = "done"
    DEFERRED = "deferred"


@frozen
class Upsert:
    """Index a note. A repair is dropped when the note has changed since it was read."""

    entry: Entry
    document: Document
    repair: bool = False


@frozen
class Removal:
    """Drop a note from the index."""

    serial: int


@frozen
class Slice:
    """Many notes as one message, so that they are indexed in one batch."""

    upserts: tuple[Upsert, ...]


IndexMessage = Upsert | Removal | Slice
IndexMailbox = Mailbox[IndexMessage, Indexed]


class Index(Protocol):
    """A search index as its indexer sees it; the methods block."""

    def is_ready(self) -> bool:
        """False until changes can be applied; they are deferred meanwhile."""
        ...

    def apply(self, upserts: Sequence[Upsert], removals: Sequence[int]) -> None:
        """Make the changes searchable, all or none; raises `IndexFailed`."""
        ...

    def stamps(self) -> Mapping[int, int]:
        """What the index holds: number to stamp."""
        ...

    def expected(self, entry: Entry) -> int:
        """The stamp the index should hold for this note."""
        ...


class Indexer:
    """The actor around one index."""

    def __init__(
        self,
        name: str,
        index: Index,
        catalogue: Catalogue,
        files: NoteFiles,
        blocking: Blocking,
        *,
        repair_slice: int = REPAIR_SLICE,
        linger: float = 0.0,
        on_behind: Callable[[str | None], None] = lambda _: None,
    ) -> None:
        """`linger`: seconds a batch waits for more while several write at once.

        `on_behind` is told why the index lacks changes that were accepted, and None once it has them.
        """
        self.name = name
        self.mailbox: IndexMailbox = Mailbox(name, CAPACITY)
        self.index = index
        self._catalogue = catalogue
        self._files = files
        self._blocking = blocking
        self._repair_slice = repair_slice
        self._linger = linger
        self._on_behind = on_behind
        self._stale = trio.Event()
        self._is_converged = False
        self._converging = trio.Event()
        self._has_ended = False
        #: Why the index will never be ready; changes are then refused instead of deferred.
        self.unusable: str | None = None
        #: Why the last batch failed, until one succeeds.
        self.failure: str | None = None

    @property
    def is_converged(self) -> bool:
        """True when the index held all notes at the last comparison and no batch failed since."""
        return self._is_converged

    async def converged(self) -> None:
        """Wait until the index holds every note."""
        while not self._is_converged:
            await self._converging.wait()

    def mark_stale(self) -> None:
        """Have the index compared with the catalogue soon."""
        self._is_converged = False
        self._stale.set()

    async def start(
        self,
        inbox: Inbox[IndexMessage, Indexed],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve changes until the mailbox closes."""
        self.mark_stale()
        task_status.started()
        try:
            await run_batches(
                inbox,
                self._flush,
                size=BATCH,
                linger=self._linger,
                linger_alone=False,
                limit=600.0,
                stats=self.mailbox.stats,
            )
        except BaseException:
            self.mark_stale()  # the batch it died with may be missing
            raise
        self._has_ended = True
        self._stale.set()

    async def converge(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Mend the index whenever it is stale, until its mailbox closes; `started` after the first time."""
        try:
            while True:
                await self._stale.wait()
                if self._has_ended:
                    return
                self._stale = trio.Event()
                if not self.index.is_ready():
                    continue  # whoever makes it ready marks it stale
                if not await self._repair():
                    await trio.sleep(REPAIR_DELAY)
                    self._stale.set()
                    continue
                if not self._stale.is_set():
                    self._is_converged = True
                    self._on_behind(None)
                    self._converging.set()
                    self._converging = trio.Event()
                    task_status.started()
                    task_status = trio.TASK_STATUS_IGNORED
        except ShuttingDown:
            return

    async def _flush(self, messages: Sequence[IndexMessage]) -> list[Indexed | Exception]:
        if not self.index.is_ready():
            self.mark_stale()
            if self.unusable is not None:
                return [IndexFailed(self.unusable)] * len(messages)
            return [Indexed.DEFERRED] * len(messages)
        latest: dict[int, Upsert | Removal] = {}
        for message in _spread(messages):
            if isinstance(message, Removal):
                latest[message.serial] = message
            elif not message.repair or self._is_current(message.entry):
                latest[message.entry.serial] = message
        upserts = [message for message in latest.values() if isinstance(message, Upsert)]
        removals = [message.serial for message in latest.values() if isinstance(message, Removal)]
        try:
            if latest:
                await self._blocking.run(lambda: self.index.apply(upserts, removals))
        except IndexFailed as failure:
            log.error("index refused a batch", index=self.name, changes=len(latest), reason=str(failure))
            self.failure = str(failure)
            self._on_behind(self.failure)
            self.mark_stale()
            return [failure] * len(messages)
        self.failure = None
        return [Indexed.DONE] * len(messages)

    def _is_current(self, entry: Entry) -> bool:
        current = self._catalogue.at_serial(entry.serial)
        return current is not None and current.stamp == entry.stamp

    async def _repair(self) -> bool:
        """Bring the index in line; False when something failed and another try is needed."""
        wanted = await self._wanted()
        held = await self._blocking.run(lambda: dict(self.index.stamps()))
        plan = plan_index(wanted, held)
        if plan.total:
            log.info("index repair", index=self.name, adding=len(plan.add), removing=len(plan.remove))
        complete = True
        for serial in plan.remove:
            if self._catalogue.at_serial(serial) is None:
                complete &= await self._send(Removal(serial))
        size = self._repair_slice
        for begin in range(0, len(plan.add), size):
            entries = [self._catalogue.at_serial(serial) for serial in plan.add[begin : begin + size]]
            present = [entry for entry in entries if entry is not None]
            loaded = await self._load_all(present)
            complete &= await self._send(Slice(tuple(upsert for upsert in loaded if upsert is not None)))
        return complete

    async def _wanted(self) -> dict[int, int]:
        """What the index should hold; what changes meanwhile comes through the mailbox."""
        wanted: dict[int, int] = {}
        for number, entry in enumerate(self._catalogue):
            if number % LOOK_SLICE == LOOK_SLICE - 1:
                await trio.lowlevel.checkpoint()
            wanted[entry.serial] = self.index.expected(entry)
        return wanted

    async def _load_all(self, entries: Sequence[Entry]) -> list[Upsert | None]:
        return await self._blocking.run(lambda: [_load(self._files, entry) for entry in entries])

    async def _send(self, message: IndexMessage) -> bool:
        envelope = await self.mailbox.post(message)
        try:
            await envelope.reply()
        except (IndexFailed, ActorDown):
            return False
        return True


def _load(files: NoteFiles, entry: Entry) -> Upsert | None:
    """The note as its file has it now, or None when it cannot be read: the scan reports that."""
    try:
        source = files.read(entry.path)
        if digest_of(source.data) == entry.digest:
            # The frontmatter says what the catalogue knows already, and takes ten times as long to read.
            document = Document(note=entry.note, content=read_layout(source.data).content)
            return Upsert(entry, document, repair=True)
        document = parse_document(source.data, entry.path, from_nanoseconds(source.state.mtime_ns))
    except (OSError, OutsideKnowledge, UnreadableNote):
        return None
    return Upsert(entry, document, repair=True)


def _spread(messages: Sequence[IndexMessage]) -> Iterator[Upsert | Removal]:
    for message in messages:
        if isinstance(message, Slice):
            yield from message.upserts
        else:
            yield message
