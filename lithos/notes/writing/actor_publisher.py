"""The publisher, which acknowledges and announces each change after an index has applied it.

The publisher processes changes in order: it waits for the first index, journals the event and replies to the
caller. The second index may follow later, and searches wait for it (read your writes). If no index can apply
a change, the change is withheld: the caller gets an error, and the event is announced after an index is
repaired. The manifest is updated a little later, in batches. It may be behind the journal, but never ahead of
it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import trio

from lithos.events.journal.messages import AppendEvents, CoordinatorMailbox, Journalled
from lithos.kernel.actors.mailboxes import ActorDown, Envelope, Inbox, Mailbox, ShuttingDown, run_batches
from lithos.kernel.actors.threads import Blocking
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import IndexFailed, StorageFailed
from lithos.kernel.values.events import EventDraft
from lithos.notes.catalogue.note_records import NoteRecords
from lithos.notes.files.manifest import Entry, Manifest
from lithos.notes.indexing_messages import Indexed, IndexMessage
from lithos.notes.writing.messages import CommittedChange, Publication, WriteOutcome, not_as_promised
from lithos.notes.writing.ports import PATIENCE, NoteIndex

log = get_logger("lithos.publisher")

#: Queue size. One batch of the writer can wait while the publisher announces the batch before it.
CAPACITY = 64
BATCH = 64
#: Number of seconds in which rows for the manifest are collected (debounce), and maximum number of rows in
#: one manifest write.
RECORD_DELAY = 0.1
RECORD_LIMIT = 10.0


#: Pending updates of the manifest by path: the row to insert or update, or None to delete the row.
_Rows = dict[str, Entry | None]
PublisherMailbox = Mailbox[Publication]


class Publisher:
    """The actor between indexers and journal. It orders and acknowledges changes and updates the manifest."""

    def __init__(
        self,
        coordinator: CoordinatorMailbox,
        indexers: Sequence[NoteIndex],
        manifest: Manifest,
        blocking: Blocking,
        records: NoteRecords,
    ) -> None:
        self.mailbox: PublisherMailbox = Mailbox("publisher", CAPACITY)
        self._coordinator = coordinator
        self.indexers = indexers
        self._manifest = manifest
        self._blocking = blocking
        self._records = records
        self._withheld: list[CommittedChange] = []
        #: Rows of changes whose events the journal could not append yet. The manifest must not be ahead of
        #: the journal.
        self._unjournalled: _Rows = {}
        #: Rows of journalled changes that are not in the manifest yet.
        self._unrecorded: _Rows = {}
        #: The journal position (seq) up to which the manifest contains all changes.
        self._position: int | None = None
        self._has_news = trio.Event()

    @property
    def withheld(self) -> int:
        """Number of stored changes that are withheld until an index is repaired."""
        return len(self._withheld)

    async def tell(self, events: Sequence[EventDraft]) -> None:
        """Journal events that do not belong to a change of a note.

        If journalling fails, the failure is only logged, because clients can read the same facts in other
        ways.
        """
        try:
            await self._coordinator.ask(AppendEvents(tuple(events)), within=PATIENCE)
        except (ActorDown, ShuttingDown, trio.TooSlowError) as failure:
            log.warning("events not journalled", events=len(events), reason=repr(failure))

    def record_later(self, rows: Sequence[Entry], removed: Sequence[str]) -> None:
        """Queue manifest rows for changes whose events the journal could not append.

        The rows are written after the journal accepts events again.

        Without these rows, the journal position in the manifest would be wrong for the files of these
        changes.
        """
        for path in removed:
            _place_last(self._unjournalled, path, None)
        for row in rows:
            _place_last(self._unjournalled, row.path, row)

    async def start(self, inbox: Inbox[Publication], *, task_status: trio.TaskStatus[None]) -> None:
        """Process publications until the mailbox closes."""
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._remember_withheld)
            nursery.start_soon(self._keep_records)
            await run_batches(inbox, self._flush, size=BATCH, limit=900.0, stats=self.mailbox.stats)
            nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + RECORD_LIMIT):
            await self._record()

    async def _flush(self, batch: Sequence[Publication]) -> list[WriteOutcome | Exception]:
        replies: list[WriteOutcome | Exception] = []
        visible: list[CommittedChange] = []
        deadline = trio.current_time() + PATIENCE
        for publication in batch:
            change = publication.change
            if publication.is_reminder:
                visible += self._take_repaired()
                replies.append(change.outcome)
            elif await self._is_taken(publication.receipts, deadline):
                self._promise(publication.receipts)
                visible += self._take_earlier(change)
                visible.append(change)
                replies.append(change.outcome)
            else:
                self._withheld.append(change)
                replies.append(_withheld_refusal(change))
        await self._announce(visible)
        return replies

    async def _is_taken(self, receipts: Sequence[Envelope[IndexMessage, Indexed]], deadline: float) -> bool:
        """Return True after an index has applied the change. If all indexes have failed, return False.

        An index that defers the change until its model is loaded has not failed, but the publisher then waits
        for the remaining indexes. While clients search, the publisher waits for all indexes until the
        deadline. Otherwise each search would have to wait.
        """
        is_taken = is_deferred = False
        waiting = list(receipts)
        while waiting:
            settled = [receipt for receipt in waiting if receipt.done.is_set()]
            for receipt in settled:
                waiting.remove(receipt)
                try:
                    is_done = await receipt.reply() is Indexed.DONE
                    is_taken, is_deferred = is_taken or is_done, True
                except (IndexFailed, ActorDown):
                    continue
            if is_taken and not any(indexer.is_in_demand for indexer in self.indexers):
                return True
            if waiting and len(waiting) < len(receipts):
                for indexer in self.indexers:
                    indexer.hurry()
            if not settled and not await _any_of(waiting, deadline if is_taken else math.inf):
                return True
        return is_taken or is_deferred

    def _promise(self, receipts: Sequence[Envelope[IndexMessage, Indexed]]) -> None:
        """Make searches wait for the change before anyone is notified of the change (read your writes)."""
        for indexer, receipt in zip(self.indexers, receipts, strict=True):
            indexer.promise(receipt)

    def _take_earlier(self, change: CommittedChange) -> list[CommittedChange]:
        """Remove and return the withheld changes of the same note or file.

        The withheld changes must be announced before `change`.
        """
        earlier = [old for old in self._withheld if _is_same_note(old, change)]
        self._withheld = [old for old in self._withheld if not _is_same_note(old, change)]
        return earlier

    def _take_repaired(self) -> list[CommittedChange]:
        """If an index has been repaired, remove and return all withheld changes."""
        if not self._has_repaired_index():
            return []
        changes, self._withheld = self._withheld, []
        log.info("withheld changes announced", changes=len(changes))
        return changes

    def _has_repaired_index(self) -> bool:
        return any(indexer.is_converged for indexer in self.indexers)

    async def _announce(self, changes: Sequence[CommittedChange]) -> None:
        """Append the events to the journal, then update the manifest.

        A crash between these two steps loses no event.
        """
        if not changes:
            return
        journalled = await self._coordinator.ask(
            AppendEvents(tuple(change.event for change in changes)), within=600.0
        )
        for change in changes:
            _remember(change, self._unjournalled)
        if journalled is Journalled.LATER:
            return
        for path, row in self._unjournalled.items():
            _place_last(self._unrecorded, path, row)
        self._unjournalled.clear()
        if isinstance(journalled, int):
            self._position = journalled
        self._has_news.set()

    async def _keep_records(self) -> None:
        """Write pending rows to the manifest in batches. This background task delays no caller."""
        if self._unrecorded:
            self._has_news.set()  # Write the rows that remain from the time before a crash.
        while True:
            await self._has_news.wait()
            await trio.sleep(RECORD_DELAY)
            self._has_news = trio.Event()
            with trio.CancelScope(shield=True, deadline=trio.current_time() + RECORD_LIMIT):
                await self._record()

    async def _record(self) -> None:
        """Write the pending rows to the manifest.

        If the write fails, this is only logged, and the write is retried later. The manifest can always be
        rebuilt.
        """
        rows, self._unrecorded = self._unrecorded, {}
        if not rows:
            return
        kept = [row for row in rows.values() if row is not None]
        gone = [path for path, row in rows.items() if row is None]
        position, is_stored = self._position, False
        try:
            await self._blocking.run(lambda: self._manifest.store(kept, gone, position))
            is_stored = True
            for each in kept:  # The next start no longer needs these intents.
                self._records.fulfil(each.note.id, each.note.version)
        except (DatabaseFailed, OSError) as failure:
            log.error("manifest not writable", waiting=len(rows), reason=str(failure))
        finally:
            if not is_stored:
                news, self._unrecorded = self._unrecorded, rows
                for path, row in news.items():
                    _place_last(self._unrecorded, path, row)

    async def _remember_withheld(self) -> None:
        """Announce the withheld changes in order after an index is repaired. This is a background task."""
        while True:
            await trio.sleep(1.0)
            if self._withheld and self._has_repaired_index():
                self.mailbox.nudge(Publication(self._withheld[0], (), is_reminder=True))


def _remember(change: CommittedChange, rows: _Rows) -> None:
    """Add the manifest updates of a change to `rows`.

    Later changes replace earlier updates of the same path.
    """
    if change.vacated is not None:
        _place_last(rows, change.vacated, None)
    if change.document is not None:
        _place_last(rows, change.entry.path, change.entry)


def _place_last(rows: _Rows, path: str, row: Entry | None) -> None:
    rows.pop(path, None)
    rows[path] = row


async def _any_of(receipts: Sequence[Envelope[IndexMessage, Indexed]], deadline: float) -> bool:
    """Wait for the first reply. Return whether a reply arrived before the deadline."""
    is_any = trio.Event()
    for receipt in receipts:
        receipt.on_done = is_any.set
    with trio.move_on_at(deadline):
        await is_any.wait()
    return is_any.is_set()


def _is_same_note(one: CommittedChange, other: CommittedChange) -> bool:
    return one.entry.note.id == other.entry.note.id or one.entry.path == other.entry.path


def _withheld_refusal(change: CommittedChange) -> StorageFailed:
    outcome = change.outcome
    return not_as_promised(
        outcome,
        f"The note is stored in {outcome.path}, but no search index could take it. The indexes "
        "repair themselves. Do not write the note again.",
    )
