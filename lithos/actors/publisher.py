"""The publisher: announces changes once they can be found.

For each change, in order, it waits for the indexes, has the event journalled, answers the caller
and notes the file in the manifest. A change that no index could take is withheld: its caller is
told, and its event follows when the repair has indexed it.
"""

from __future__ import annotations

from collections.abc import Sequence

import trio
from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.actors.coordinator import AppendEvents, CoordinatorMailbox, Journalled
from lithos.actors.indexer import Indexed, Indexer, IndexMessage
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


@frozen
class Publication:
    """A change and the envelopes of the index messages it waits for.

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
        #: Journalled, but the manifest could not be written yet: it must not forget them either.
        self._unrecorded: _Rows = {}

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
            await run_batches(inbox, self._flush, size=BATCH, limit=900.0, stats=self.mailbox.stats)
            nursery.cancel_scope.cancel()

    async def _flush(self, batch: Sequence[Publication]) -> list[WriteOutcome | Exception]:
        replies: list[WriteOutcome | Exception] = []
        visible: list[Change] = []
        for publication in batch:
            change = publication.change
            if publication.is_reminder:
                visible += self._take_repaired()
                replies.append(change.outcome)
            elif await _is_visible(publication.receipts):
                visible += self._take_earlier(change)
                visible.append(change)
                replies.append(change.outcome)
            else:
                self._withheld.append(change)
                replies.append(_withheld_refusal(change))
        await self._announce(visible)
        return replies

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
        await self._record(journalled if isinstance(journalled, int) else None)

    async def _record(self, seq: int | None) -> None:
        """Bring the manifest up to date; it can be rebuilt, so its failure fails nobody's request."""
        kept = [row for row in self._unrecorded.values() if row is not None]
        gone = [path for path, row in self._unrecorded.items() if row is None]
        try:
            await self._blocking.run(lambda: self._manifest.store(kept, gone, seq))
        except (DatabaseFailed, OSError) as failure:
            log.error("manifest refuses to write", waiting=len(self._unrecorded), reason=str(failure))
            return
        self._unrecorded.clear()

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


def _is_same_note(one: Change, other: Change) -> bool:
    return one.entry.note.id == other.entry.note.id or one.entry.path == other.entry.path


async def _is_visible(receipts: Sequence[Envelope[IndexMessage, Indexed]]) -> bool:
    """True unless every index failed; an index that waits for its model has not failed."""
    visible = False
    for receipt in receipts:
        try:
            await receipt.reply()
            visible = True
        except (IndexFailed, ActorDown):
            continue
    return visible


def _withheld_refusal(change: Change) -> StorageFailed:
    outcome = change.outcome
    return StorageFailed(
        f"The note is stored in {outcome.path}, but no search index could take it. "
        "The indexes repair themselves; do not write it again.",
        id=outcome.id,
        path=outcome.path,
        version=outcome.version,
    )
