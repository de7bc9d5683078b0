"""The feed of the enrich queue.

The feed selects the events that trigger enrichment of notes (docs/spec/memory.md §4).

Delivery is at least once: triggers are stored durably in the queue before the cursor moves. After a crash in
between, the same events are read again. A note that is queued twice is still one job.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import trio

from lithos.events.journal.broadcaster import Broadcaster
from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.reading import JournalThread
from lithos.events.reading.agents import Cursors
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.failure_boundary import survive
from lithos.kernel.actors.threads import slices
from lithos.kernel.log import get_logger
from lithos.kernel.values.events import (
    EDGE_UPSERTED,
    ENRICHMENT,
    NOTE_CREATED,
    NOTE_DELETED,
    NOTE_RENAMED,
    NOTE_UPDATED,
    Event,
    EventDraft,
)
from lithos.memory.model.memory import Enqueue, EnrichTrigger
from lithos.memory.retrieve.feedback import Learning
from lithos.notes.catalogue.catalogue import Catalogue

log = get_logger("lithos.enrichment")


FINDING_POSTED: Final = "finding.posted"
#: Types of events after which the text of a note may have changed.
OF_CONTENT: Final = frozenset({NOTE_CREATED, NOTE_UPDATED})
#: Types of events after which derived notes must be resolved again.
OF_EXISTENCE: Final = frozenset({NOTE_CREATED, NOTE_DELETED})
_OF_NOTES: Final = frozenset({NOTE_CREATED, NOTE_UPDATED, NOTE_RENAMED, NOTE_DELETED})


def find_triggers(draft: EventDraft, catalogue: Catalogue) -> list[EnrichTrigger]:
    """Return the triggers of an event. A missing note has a trigger only if this event deleted it.

    Changes by enrichment itself are not triggers. They are identified by their hidden origin, because any
    agent may use the name.
    """
    if draft.origin.partition(":")[0] == ENRICHMENT:
        return []
    return [
        EnrichTrigger(trigger_type=draft.type, node_id=note_id)
        for note_id in _notes(draft, catalogue)
        if isinstance(note_id, str) and (note_id in catalogue or draft.type == NOTE_DELETED)
    ]


def _notes(draft: EventDraft, catalogue: Catalogue) -> list[Any]:
    payload = draft.payload
    if draft.type in _OF_NOTES:
        return [payload.get("id") or _id_at(payload.get("dest_path") or payload.get("path"), catalogue)]
    if draft.type == FINDING_POSTED:
        return [payload.get("knowledge_id")]
    return [payload.get("from_id"), payload.get("to_id")] if draft.type == EDGE_UPSERTED else []


def _id_at(path: object, catalogue: Catalogue) -> str | None:
    entry = catalogue.at_path(path) if isinstance(path, str) else None
    return None if entry is None else entry.note.id


CURSOR: Final = "lithos-enrich"
#: Number of events per page of the journal, which has about 200 kB and takes a few milliseconds in a thread.
PAGE: Final = 500
#: Seconds to wait for further events. Each turn costs two disk syncs, however many events it handles.
LINGER: Final = 1.0
#: Seconds after which a failed write is retried.
RETRY: Final = 10.0


class _Bell:
    """An event that the waiter resets automatically."""

    def __init__(self) -> None:
        self._rung = trio.Event()
        self._rung.set()

    def ring(self) -> None:
        self._rung.set()

    async def wait(self) -> None:
        await self._rung.wait()
        self._rung = trio.Event()


async def _follow(bell: _Bell, catch_up: Callable[[], Awaitable[object]]) -> None:
    while True:
        await bell.wait()
        await trio.sleep(LINGER)
        if not await survive("enrichment cannot read events; it will retry", catch_up):
            bell.ring()
            await trio.sleep(RETRY)


class JournalFeed:
    """A consumer of the event journal with a durable cursor."""

    def __init__(
        self,
        journal: CoordinationStore,
        catalogue: Catalogue,
        reading: JournalThread,
        coordinator: Coordinator,
        broadcaster: Broadcaster,
        queue: Learning,
    ) -> None:
        self._broadcaster = broadcaster
        self._store = journal
        self._reading = reading
        self._cursors = Cursors(coordinator.mailbox, self._store, self._reading)
        self._catalogue = catalogue
        self._queue = queue
        self._position: int | None = None
        self._turn = trio.Lock()
        self._bell = _Bell()

    async def run(self) -> None:
        """Consume events until cancelled."""
        self._broadcaster.watch(self)
        await _follow(self._bell, self.catch_up)

    def see(self, event: Event) -> None:
        """Wake the feed, which then reads the event from the journal (broadcaster callback)."""
        self._bell.ring()

    def end(self) -> None:
        """Do nothing at shutdown (broadcaster callback). The task of the feed is cancelled separately."""

    async def catch_up(self) -> None:
        """Wait until all events from before this call are in the queue."""
        async with self._turn:
            while await self._take_page():
                pass

    async def _take_page(self) -> bool:
        """Enqueue the triggers in one page of the journal. Return whether there may be more events."""
        position = await self._find_position()
        events, pruned_through = await self._reading.run(partial(self._store.page_after, position, PAGE))
        if pruned_through > position:
            await self._take_all(position, pruned_through)
            return True
        if not events:
            return False
        triggers = [trigger for event in events for trigger in find_triggers(event.draft, self._catalogue)]
        if triggers:
            await self._queue.submit(Enqueue(tuple(dict.fromkeys(triggers))))
        self._position = events[-1].seq
        if triggers or len(events) == PAGE:
            await self._acknowledge(self._position)
        return True

    async def _find_position(self) -> int:
        """Return the durable cursor. Initially it is the beginning of the journal."""
        if self._position is None:
            found = await self._cursors.find(CURSOR)
            self._position = await self._reading.run(self._store.pruned_through) if found is None else found
        return self._position

    async def _take_all(self, position: int, pruned_through: int) -> None:
        """Enqueue all notes.

        All notes must be enqueued if unread events were pruned, because the pruned events may concern any
        note.
        """
        log.warning("enrichment missed events, all notes queued", cursor=position, lost_to=pruned_through)
        async for some in slices(list(self._catalogue)):
            triggers = [EnrichTrigger(trigger_type=NOTE_UPDATED, node_id=each.note.id) for each in some]
            await self._queue.submit(Enqueue(tuple(triggers)))
        self._position = pruned_through
        await self._acknowledge(pruned_through)

    async def _acknowledge(self, seq: int) -> None:
        self._cursors.acknowledge(CURSOR, seq)
        await self._cursors.store(CURSOR)
