"""The publisher: announces changes once an index has taken them.

For each change, in order, it waits for the first index, has the event journalled and answers the
caller; the other index follows, and searches wait for it. A change that no index could take is
withheld: its caller is told, and its event follows when the repair has indexed it. The manifest learns
of the files a little later, many at once: it must not run ahead of the journal, but may lag behind it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import trio
from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.actors.coordinator import AppendEvents, CoordinatorMailbox, Journalled
from lithos.actors.indexer import PATIENCE, Indexed, Indexer, IndexMessage
from lithos.actors.kit import ActorDown, Envelope, Inbox, Mailbox, run_batches
from lithos.actors.requests import Change, WriteOutcome
from lithos.core.errors import StorageFailed
from lithos.stores.index_failure import IndexFailed
from lithos.stores.manifest import Manifest, ManifestRow
from lithos.stores.sqlite import DatabaseFailed
from lithos.telemetry import get_logger

log = get_logger("lithos.publisher")

#: One batch of the writer ahead of the one being announced.
CAPACITY = 64
BATCH = 64
#: Seconds for which the manifest gathers rows, and at most for the last ones at the end.
RECORD_DELAY = 0.1
RECORD_LIMIT = 10.0


@frozen
class Publication:
    """A change and the envelopes of its messages to the indexes; the first success is enough.

    `is_reminder` marks the publisher's own note to itself that an index is repaired.
    """

    change: Change
    receipts: Sequence[Envelope[IndexMessage, Indexed]]
    is_reminder: bool = False


#: What the manifest has to learn: rows by path, None for a file that is gone.
_Rows = dict[str, ManifestRow | None]
PublisherMailbox = Mailbox[Publication, WriteOutcome]


class Publisher:
    """The actor between the indexes and the journal."""

    def __init__(
        self,
        coordinator: CoordinatorMailbox,
        indexers: Sequence[Indexer],
        manifest: Manifest,
        blocking: Blocking,
    ) -> None:
        self.mailbox: PublisherMailbox = Mailbox("publisher", CAPACITY)
        self._coordinator = coordinator
        self._indexers = indexers
        self._manifest = manifest
        self._blocking = blocking
        self._withheld: list[Change] = []
        #: Announced, but the journal could not be written yet: the manifest must not run ahead of it.
        self._unjournalled: _Rows = {}
        #: Journalled, but not in the manifest yet: it must not forget them either.
        self._unrecorded: _Rows = {}
        #: The journal position up to which the manifest may say that it knows all files.
        self._position: int | None = None
        self._has_news = trio.Event()

    @property
    def withheld(self) -> int:
        """How many stored changes wait for an index."""
        return len(self._withheld)

    async def start(
        self,
        inbox: Inbox[Publication, WriteOutcome],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve publications until the mailbox closes."""
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
        visible: list[Change] = []
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
        """True as soon as an index has taken the change, False when every index has failed.

        One that waits for its model has not failed; but then the others are waited for. While searches
        come in all are waited for until the deadline, or else the searches would have to wait: longer, and
        each of them.
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
            if is_taken and not any(indexer.is_in_demand for indexer in self._indexers):
                return True
            if waiting and len(waiting) < len(receipts):
                for indexer in self._indexers:
                    indexer.hurry()
            if not settled and not await _any_of(waiting, deadline if is_taken else math.inf):
                return True
        return is_taken or is_deferred

    def _promise(self, receipts: Sequence[Envelope[IndexMessage, Indexed]]) -> None:
        """From here on searches wait for the change, before anybody can hear of it."""
        for indexer, receipt in zip(self._indexers, receipts, strict=True):
            indexer.promise(receipt)

    def _take_earlier(self, change: Change) -> list[Change]:
        """Withheld changes of the same note or file: no later one may overtake them."""
        earlier = [old for old in self._withheld if _is_same_note(old, change)]
        self._withheld = [old for old in self._withheld if not _is_same_note(old, change)]
        return earlier

    def _take_repaired(self) -> list[Change]:
        """What was withheld, if an index has caught up by now."""
        if not self._has_repaired_index():
            return []
        changes, self._withheld = self._withheld, []
        log.info("withheld changes announced", changes=len(changes))
        return changes

    def _has_repaired_index(self) -> bool:
        return any(indexer.is_converged for indexer in self._indexers)

    async def _announce(self, changes: Sequence[Change]) -> None:
        """Journal the events; the manifest follows, so that a crash in between costs no event."""
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
        """Bring the manifest up to date, some changes at a time and while nobody waits for it."""
        if self._unrecorded:
            self._has_news.set()  # left over from before a crash
        while True:
            await self._has_news.wait()
            await trio.sleep(RECORD_DELAY)
            self._has_news = trio.Event()
            with trio.CancelScope(shield=True, deadline=trio.current_time() + RECORD_LIMIT):
                await self._record()

    async def _record(self) -> None:
        """The manifest can be rebuilt, so its failure fails nobody's request."""
        rows, self._unrecorded = self._unrecorded, {}
        if not rows:
            return
        kept = [row for row in rows.values() if row is not None]
        gone = [path for path, row in rows.items() if row is None]
        position, is_stored = self._position, False
        try:
            await self._blocking.run(lambda: self._manifest.store(kept, gone, position))
            is_stored = True
        except (DatabaseFailed, OSError) as failure:
            log.error("manifest refuses to write", waiting=len(rows), reason=str(failure))
        finally:
            if not is_stored:
                news, self._unrecorded = self._unrecorded, rows
                for path, row in news.items():
                    _place_last(self._unrecorded, path, row)

    async def _remember_withheld(self) -> None:
        """Once a repair has brought withheld changes into an index, have them announced in turn."""
        while True:
            await trio.sleep(1.0)
            if self._withheld and self._has_repaired_index():
                self.mailbox.nudge(Publication(self._withheld[0], (), is_reminder=True))


def _remember(change: Change, rows: _Rows) -> None:
    """What the manifest has to learn of a change; later changes come later in it."""
    if change.vacated is not None:
        _place_last(rows, change.vacated, None)
    if change.document is not None:
        _place_last(rows, change.entry.path, change.entry.to_row())


def _place_last(rows: _Rows, path: str, row: ManifestRow | None) -> None:
    rows.pop(path, None)
    rows[path] = row


async def _any_of(receipts: Sequence[Envelope[IndexMessage, Indexed]], deadline: float) -> bool:
    """Wait for one of them; False when none was done in time."""
    is_any = trio.Event()
    for receipt in receipts:
        receipt.on_done = is_any.set
    with trio.move_on_at(deadline):
        await is_any.wait()
    return is_any.is_set()


def _is_same_note(one: Change, other: Change) -> bool:
    return one.entry.note.id == other.entry.note.id or one.entry.path == other.entry.path


def _withheld_refusal(change: Change) -> StorageFailed:
    outcome = change.outcome
    return StorageFailed(
        f"The note is stored in {outcome.path}, but no search index could take it. "
        "The indexes repair themselves; do not write it again.",
        id=outcome.id,
        path=outcome.path,
        version=outcome.version,
    )
