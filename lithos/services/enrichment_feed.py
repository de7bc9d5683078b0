"""From events to the enrich queue, so that nothing is lost: first the queue is durable, then the cursor.

Whatever ends the process in between, the same events are read again; a note that waits twice in the
queue is still one job.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

import trio

from lithos.actors.blocking import Blocking
from lithos.actors.broadcaster import Broadcaster
from lithos.actors.catalogue import Catalogue
from lithos.core.events import NOTE_UPDATED, Event, EventDraft
from lithos.core.memory import Enqueue, EnrichTrigger, LearningCommand
from lithos.services.cursors import Cursors
from lithos.services.enrichment_boundary import survive
from lithos.services.enrichment_triggers import TASK_COMPLETED, find_triggers
from lithos.services.slices import slices
from lithos.stores.coordination import CoordinationStore
from lithos.telemetry import get_logger

log = get_logger("lithos.enrichment")

CURSOR: Final = "lithos-enrich"
#: Events per journal page: some 200 kB, a few milliseconds in a thread.
PAGE: Final = 500
#: Seconds to wait for more: each turn costs two syncs of the disk, whatever it brings.
LINGER: Final = 1.0
#: Seconds until what could not be stored is tried again.
RETRY: Final = 10.0
#: Triggers kept in memory at most where there is no journal.
MOST_PENDING: Final = 200_000


class Queue(Protocol):
    """The enrich queue, and which tasks have working memory."""

    async def submit(self, command: LearningCommand) -> Any: ...

    async def working_tasks(self) -> Sequence[str]: ...


class Feed(Protocol):
    """Fills the enrich queue."""

    async def run(self) -> None:
        """Follow the events for ever."""
        ...

    async def catch_up(self) -> None:
        """Return once everything that happened before is in the queue."""
        ...


class _Bell:
    """Rung by events; whoever waits learns that there were some."""

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
        if not await survive("enrichment cannot read on; it will try again", catch_up):
            bell.ring()
            await trio.sleep(RETRY)


class JournalFeed:
    """Reads the journal from its durable cursor on."""

    def __init__(
        self,
        broadcaster: Broadcaster,
        store: CoordinationStore,
        reading: Blocking,
        cursors: Cursors,
        catalogue: Catalogue,
        queue: Queue,
        completed: Callable[[Sequence[str]], Awaitable[Sequence[str]]],
    ) -> None:
        self._broadcaster = broadcaster
        self._store = store
        self._reading = reading
        self._cursors = cursors
        self._catalogue = catalogue
        self._queue = queue
        #: Which of some tasks are completed.
        self._completed = completed
        self._position: int | None = None
        self._turn = trio.Lock()
        self._bell = _Bell()

    async def run(self) -> None:
        self._broadcaster.watch(self)
        await _follow(self._bell, self.catch_up)

    def see(self, event: Event) -> None:
        """The broadcaster tells of an event; it is read from the journal, so none is kept here."""
        self._bell.ring()

    def end(self) -> None:
        """The broadcaster tells that the server stops; so will whoever runs the feed."""

    async def catch_up(self) -> None:
        async with self._turn:
            while await self._take_page():
                pass

    async def _take_page(self) -> bool:
        """Queue what one page asks for; whether there may be more."""
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
        return len(events) == PAGE

    async def _find_position(self) -> int:
        """The cursor; where there never was one, the journal's beginning."""
        if self._position is None:
            found = await self._cursors.find(CURSOR)
            self._position = await self._reading.run(self._store.pruned_through) if found is None else found
        return self._position

    async def _take_all(self, position: int, pruned_through: int) -> None:
        """Events were dropped unread: queue all that they could have been about."""
        log.warning(
            "events lost to enrichment; every note is queued", cursor=position, lost_to=pruned_through
        )
        async for some in slices(list(self._catalogue)):
            ids = [entry.note.id for entry in some]
            await self._queue.submit(Enqueue(tuple(_of_note(note_id) for note_id in ids)))
        completed = await self._completed(await self._queue.working_tasks())
        if completed:
            await self._queue.submit(Enqueue(tuple(_of_task(task_id) for task_id in completed)))
        self._position = pruned_through
        await self._acknowledge(pruned_through)

    async def _acknowledge(self, seq: int) -> None:
        self._cursors.acknowledge(CURSOR, seq)
        await self._cursors.store(CURSOR)


def _of_note(note_id: str) -> EnrichTrigger:
    return EnrichTrigger(trigger_type=NOTE_UPDATED, node_id=note_id)


def _of_task(task_id: str) -> EnrichTrigger:
    return EnrichTrigger(trigger_type=TASK_COMPLETED, task_id=task_id)


class DirectFeed:
    """Where events are switched off the coordinator hands over what would have been journalled.

    What is not in the queue yet, a second's worth, is lost with the process: nobody wrote it down.
    """

    def __init__(self, catalogue: Catalogue, queue: Queue) -> None:
        self._catalogue = catalogue
        self._queue = queue
        self._pending: dict[EnrichTrigger, None] = {}
        self._turn = trio.Lock()
        self._bell = _Bell()

    def offer(self, drafts: Sequence[EventDraft]) -> None:
        """Take what a commit brought; never waits."""
        for draft in drafts:
            for trigger in find_triggers(draft, self._catalogue):
                if len(self._pending) < MOST_PENDING:
                    self._pending[trigger] = None
        self._bell.ring()

    async def run(self) -> None:
        await _follow(self._bell, self.catch_up)

    async def catch_up(self) -> None:
        async with self._turn:
            while self._pending:
                some = tuple(trigger for trigger, _ in zip(self._pending, range(PAGE), strict=False))
                await self._queue.submit(Enqueue(some))
                for trigger in some:
                    del self._pending[trigger]
