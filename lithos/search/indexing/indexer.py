"""The indexer: the only actor that changes one search index.

The module also ensures that searches see earlier writes (read your writes).

The indexer applies the writer's changes, batch by batch, in a worker thread. If the index fails, the batch is
refused but the indexer continues. `converge` then compares the actual content with the expected content and
repairs the difference (reconciliation). A cold start makes the same comparison.

An index with expensive commits may delay a batch to collect more changes (linger). A caller that needs a
current index calls `hurry` or, like searches, waits for `caught_up`. That wait covers only promised changes,
which are those acknowledged before the search began. If no search is running, the publisher acknowledges a
change before a slow index contains it. During searches (`is_in_demand`), the publisher waits until all
indexes contain the change, and changes do not linger. Searches therefore rarely wait for a commit.
`Visibility` waits for both indexes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import trio
from attrs import frozen

from lithos.kernel.actors.mailboxes import Envelope, Inbox, Mailbox, ShuttingDown, run_batches
from lithos.kernel.actors.threads import Blocking
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import IndexFailed
from lithos.notes.catalogue.catalogue import Catalogue, Entry
from lithos.notes.files.files import NoteFiles
from lithos.notes.indexing_messages import (
    FlushIndex,
    Index,
    Indexed,
    IndexMailbox,
    IndexMessage,
    Removal,
    Upsert,
    spread,
)
from lithos.notes.writing.ports import PATIENCE
from lithos.search.indexing.repair import REPAIR_SLICE, Repair

log = get_logger("lithos.indexer")

#: Maximum number of queued changes. If the index is slower than the writer, the writer waits (backpressure).
CAPACITY = 256
BATCH = 64
REPAIR_DELAY = 5.0
#: Factor by which a batch lingers longer while a program writes many notes in succession, and seconds for
#: which the factor applies.
GATHERING = 10.0
GATHERING_LASTS = 3.0
#: Seconds after a search during which another search is expected.
DEMAND = 1.0


class Indexer:
    """The actor that owns one search index.

    The indexer applies batches, keeps the index current, repairs the index and reports its health.
    """

    def __init__(
        self,
        name: str,
        index: Index,
        catalogue: Catalogue,
        files: NoteFiles,
        blocking: Blocking,
        *,
        reading: Blocking | None = None,
        repair_slice: int = REPAIR_SLICE,
        batch: int = BATCH,
        linger: float = 0.0,
        on_behind: Callable[[str | None], None] = lambda _: None,
    ) -> None:
        """Create the indexer. `reading` reads the next notes of a repair while earlier notes are indexed.

        `linger` is the number of seconds that a batch waits for more changes unless it is hurried.
        `on_behind` is called with the reason when the index becomes stale, and with None when the index is
        current again.
        """
        self.name = name
        self.mailbox: IndexMailbox = Mailbox(name, CAPACITY)
        self.index = index
        self._catalogue = catalogue
        self._blocking = blocking
        self._repair = Repair(
            name, index, self.mailbox, catalogue, files, blocking, reading or blocking, repair_slice
        )
        self._batch = batch
        self._linger = linger
        self._gathers_until = -math.inf
        self._on_behind = on_behind
        #: The last accepted change, and the last change promised to searches. All earlier changes are
        #: included, because messages are handled in order.
        self._newest: Envelope[IndexMessage, Indexed] | None = None
        self._promised: Envelope[IndexMessage, Indexed] | None = None
        self._searched_at = -math.inf
        #: Each waiting search acquires this lock, so that only one search continues per turn of the event
        #: loop.
        self._resuming = trio.Lock()
        #: The last change for which a flush was requested.
        self._hurried: Envelope[IndexMessage, Indexed] | None = None
        #: A change that a search has waited for until its timeout.
        self._late: Envelope[IndexMessage, Indexed] | None = None
        #: Reason why a batch is missing, until a comparison finds the index complete.
        self._lacking: str | None = None
        self._stale = trio.Event()
        self._is_converged = False
        self._converging = trio.Event()
        self._has_ended = False
        #: Reason why the index can never become ready. Changes are then refused instead of deferred.
        self.unusable: str | None = None
        #: Reason why the last batch failed. None after the next success.
        self.failure: str | None = None

    @property
    def is_converged(self) -> bool:
        """Return whether the last comparison found all notes in the index and no batch has failed since."""
        return self._is_converged

    async def converged(self) -> None:
        """Wait until the index contains every note."""
        while not self._is_converged:
            await self._converging.wait()

    async def accept(self, change: Upsert | Removal) -> Envelope[IndexMessage, Indexed]:
        """Enqueue a change and return the future of its reply.

        While searches are expected, the change does not linger, because its caller waits for this index too.
        """
        self._newest = envelope = await self.mailbox.post(change)
        if self.is_in_demand:
            self.hurry()
        return envelope

    def promise(self, envelope: Envelope[IndexMessage, Indexed]) -> None:
        """Make `caught_up` wait for an accepted change that is about to be acknowledged."""
        self._promised = envelope

    def note_search(self) -> None:
        """Record a search, so that more searches are expected soon (`is_in_demand`)."""
        self._searched_at = trio.current_time()

    @property
    def is_in_demand(self) -> bool:
        """Return whether a search arrived within the last second and the index is not late."""
        return self._late is None and trio.current_time() - self._searched_at < DEMAND

    def gather(self) -> None:
        """Expect many more changes soon, for example from an import.

        Batches are then fewer and larger unless hurried.
        """
        self._gathers_until = trio.current_time() + GATHERING_LASTS

    def _linger_now(self) -> float:
        return self._linger * (GATHERING if trio.current_time() < self._gathers_until else 1.0)

    def hurry(self) -> None:
        """Apply accepted changes at once, because a caller waits for them (flush)."""
        newest = self._newest
        if not self._linger or newest is None or newest.done.is_set() or newest is self._hurried:
            return
        self._hurried = newest
        self.mailbox.nudge(FlushIndex())  # A full mailbox fills a batch, which does not linger.

    async def caught_up(self, deadline: float) -> None:
        """Wait until the index has applied or refused all changes promised earlier (read your writes).

        If `deadline` (in trio's time) passes, the index is reported as stale until it contains the changes.
        """
        promised = self._promised
        if promised is None or promised.done.is_set():
            return
        self.hurry()
        with trio.move_on_at(deadline):
            await promised.done.wait()
            # The waiting callers continue in different turns of the event loop. Resuming all of them in the
            # same turn would make that turn too long.
            async with self._resuming:
                pass
        if not promised.done.is_set():
            log.warning("index late", index=self.name, waiting=self.mailbox.depth)
            self._late = promised
            self._tell_behind()

    def _tell_behind(self) -> None:
        late = (
            None
            if self._late is None
            else (f"The {self.name} index is late: it is still processing changes.")
        )
        self._on_behind(self._lacking or late)

    def _note_progress(self) -> None:
        if self._late is not None and self._late.done.is_set():
            self._late = None
            self._tell_behind()

    def mark_stale(self) -> None:
        """Schedule a repair, which compares the index with the catalogue and applies the difference."""
        self._is_converged = False
        self._stale.set()

    async def start(self, inbox: Inbox[IndexMessage], *, task_status: trio.TaskStatus[None]) -> None:
        """Serve changes until the mailbox closes."""
        self.mark_stale()
        task_status.started()
        try:
            await run_batches(
                inbox,
                self._flush,
                size=self._batch,
                linger=self._linger_now,
                is_urgent=lambda message: isinstance(message, FlushIndex),
                on_served=self._note_progress,
                limit=600.0,
                stats=self.mailbox.stats,
            )
        except BaseException as crash:
            self._lacking = f"its indexer ended with {type(crash).__name__} and is restarted"
            self.mark_stale()  # The batch applied during a crash may be missing.
            self._tell_behind()
            raise
        self._has_ended = True
        self._stale.set()

    async def converge(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Background task: repair the index whenever it is stale. Calls `started` after the first attempt.

        A failing index does not delay the server start (docs/spec/lifecycle.md §1). Searches report why they
        are degraded until a later attempt succeeds.
        """
        try:
            while True:
                await self._stale.wait()
                if self._has_ended:
                    return
                self._stale = trio.Event()
                if not self.index.is_ready():
                    continue  # No repair is needed: a ready index is marked stale.
                if not await self._repair.run():
                    task_status.started()
                    task_status = trio.TASK_STATUS_IGNORED
                    await trio.sleep(REPAIR_DELAY)
                    self._stale.set()
                    continue
                if not self._stale.is_set():
                    self._is_converged = True
                    self._lacking = None
                    self._tell_behind()
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
        for message in spread(messages):
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
            self.failure = self._lacking = str(failure)
            self._tell_behind()
            self.mark_stale()
            return [failure] * len(messages)
        self.failure = None
        return [Indexed.DONE] * len(messages)

    def _is_current(self, entry: Entry) -> bool:
        current = self._catalogue.at_serial(entry.serial)
        return current is not None and current.stamp == entry.stamp


class FulltextIndexer(Indexer):
    """The indexer of the full-text index."""


class VectorIndexer(Indexer):
    """The indexer of the vectors."""


@frozen
class Visibility:
    """A barrier at which searches wait until the indexes contain earlier writes (read your writes)."""

    _words: FulltextIndexer
    _meaning: VectorIndexer

    async def reach(self, *, words: bool = True, meaning: bool = True) -> None:
        """Wait until the selected indexes are current. Return at once if they already are.

        No error is raised for a late index. Searches of that index fail with the reason until the index has
        caught up.
        """
        wanted = [
            indexer for indexer, is_wanted in ((self._words, words), (self._meaning, meaning)) if is_wanted
        ]
        for indexer in wanted:
            indexer.note_search()
        deadline = trio.current_time() + PATIENCE
        for indexer in wanted:
            await indexer.caught_up(deadline)
