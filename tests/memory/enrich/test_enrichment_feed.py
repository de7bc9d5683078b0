"""Feed from the event journal to the enrichment queue. It selects events and loses none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.events.journal.messages import AppendEvents
from lithos.kernel.actors.threads import Inline
from lithos.kernel.values.errors import StorageFailed
from lithos.kernel.values.events import EventDraft
from lithos.memory.enrich.feed import CURSOR, JournalFeed, find_triggers
from lithos.memory.model.memory import Enqueue, EnrichTrigger
from lithos.notes.catalogue.catalogue import Catalogue
from tests.fakes import START, make_entry
from tests.kernel.actors.desks import CoordinatorDesk

ONE, TWO = make_entry(1, "a/one.md").note.id, make_entry(2, "two.md").note.id
GONE = "99999999-0000-4000-8000-000000000000"


def draft(type: str, agent: str = "tester", origin: str = "tool:1", **payload: Any) -> EventDraft:
    return EventDraft(type=type, agent=agent, payload=payload, timestamp=START, origin=origin)


def two_notes() -> Catalogue:
    catalogue = Catalogue()
    catalogue.load([make_entry(1, "a/one.md"), make_entry(2, "two.md")])
    return catalogue


def asked_by(event: EventDraft) -> list[str | None]:
    return [trigger.node_id for trigger in find_triggers(event, two_notes())]


def test_changed_notes_are_queued_for_enrichment() -> None:
    table: list[tuple[EventDraft, list[str]]] = [
        (draft("note.created", id=ONE), [ONE]),
        (draft("note.updated", id=ONE), [ONE]),
        (draft("note.renamed", id=ONE, src_path="x.md", dest_path="a/one.md"), [ONE]),
        (draft("note.updated", path="a/one.md"), [ONE]),
        (draft("note.renamed", src_path="x.md", dest_path="two.md"), [TWO]),
        (draft("note.updated", path="nowhere.md"), []),
        (draft("note.updated", id=GONE), []),
        (draft("note.deleted", id=GONE), [GONE]),
        (draft("note.deleted", path="nowhere.md"), []),
        (draft("task.completed", task_id="t1"), []),
        (draft("finding.posted", task_id="t1", knowledge_id=TWO), [TWO]),
        (draft("finding.posted", task_id="t1"), []),
        (draft("finding.posted", task_id="t1", knowledge_id=GONE), []),
        (draft("edge.upserted", from_id=ONE, to_id=TWO), [ONE, TWO]),
        (draft("edge.upserted", from_id=ONE, to_id=GONE), [ONE]),
        (draft("agent.registered", agent_id=ONE), []),
    ]
    assert [(event, asked_by(event)) for event, _ in table] == table


def test_changes_by_enrichment_are_recognised_by_their_origin() -> None:
    """behaviour 157"""
    assert asked_by(draft("note.updated", origin="enrichment", id=ONE)) == []
    assert asked_by(draft("note.updated", origin="enrichment:ab12", id=ONE)) == []
    assert asked_by(draft("edge.upserted", origin="enrichment:ab12", from_id=ONE, to_id=TWO)) == []
    assert asked_by(draft("note.updated", agent="lithos-enrich", id=ONE)) == [ONE]


class FakeQueue:
    """Queue that records triggers. On demand, it is slow or broken."""

    def __init__(self) -> None:
        self.triggers: list[EnrichTrigger] = []
        self.delay = 0.0
        self.failures = 0

    async def submit(self, command: Any) -> None:
        assert isinstance(command, Enqueue)
        await trio.sleep(self.delay)
        if self.failures:
            self.failures -= 1
            raise StorageFailed("The disk is full.")
        self.triggers += command.triggers

    def nodes(self) -> list[str | None]:
        return [trigger.node_id for trigger in self.triggers]


class Journal(CoordinatorDesk):
    """Journal with its coordinator. `feed` returns the worker that a new process would create."""

    def __init__(self, root: Path, journal_size: int = 100_000) -> None:
        super().__init__(root / "coordination.db", journal_size=journal_size)
        self.catalogue = two_notes()
        self.queue = FakeQueue()

    def feed(self) -> JournalFeed:
        thread: Any = Inline()
        return JournalFeed(self.store, self.catalogue, thread, self.coordinator, self.broadcaster, self.queue)

    async def tell(self, *drafts: EventDraft) -> None:
        await self.mailbox.ask(AppendEvents(drafts))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[trio.Nursery]:
        async with self.served() as background:
            yield background
        self.store.close()


def deletion(number: int) -> EventDraft:
    """Return a deletion event for note `number`. The note need not exist."""
    return draft("note.deleted", id=f"{number:08}-0000-4000-8000-000000000000")


@pytest.mark.autojump
async def test_all_events_reach_the_queue_after_a_worker_restart(
    tmp_path: Path,
) -> None:
    """behaviour 190"""
    journal = Journal(tmp_path)
    journal.queue.delay = 20.0
    async with journal.running():
        for process in range(2):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(journal.feed().run)
                for start in range(0, 2500, 100):
                    await journal.tell(*(deletion(2500 * process + start + n) for n in range(100)))
                    await trio.sleep(1.0)
                nursery.cancel_scope.cancel()
        assert 0 < len(journal.queue.triggers) < 4000
        async with trio.open_nursery() as nursery:
            nursery.start_soon(journal.feed().run)
            await trio.sleep(600.0)
            nursery.cancel_scope.cancel()
        wanted = {deletion(number).payload["id"] for number in range(5000)}
        assert set(journal.queue.nodes()) == wanted
        assert journal.store.cursor(CURSOR) == journal.coordinator.head


@pytest.mark.autojump
async def test_crash_between_queue_and_cursor_write_loses_no_event(tmp_path: Path) -> None:
    """behaviour 190"""
    journal = Journal(tmp_path)
    async with journal.running():
        await journal.tell(deletion(1), deletion(2))
        unacknowledged = journal.feed()
        unacknowledged._acknowledge = _end_the_process
        with pytest.raises(KeyboardInterrupt):
            await unacknowledged.catch_up()
        await journal.tell(deletion(3))
        await journal.feed().catch_up()
        wanted = [deletion(number).payload["id"] for number in (1, 2, 1, 2, 3)]
        assert journal.queue.nodes() == wanted
        await journal.feed().catch_up()
        assert journal.queue.nodes() == wanted


async def _end_the_process(seq: int) -> None:
    raise KeyboardInterrupt


@pytest.mark.autojump
async def test_queue_that_cannot_be_written_is_retried_in_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.queue.failures = 3
    async with journal.running() as background:
        background.start_soon(journal.feed().run)
        await journal.tell(deletion(1))
        await trio.sleep(5.0)
        await journal.tell(deletion(2))
        assert journal.queue.triggers == []
        await trio.sleep(60.0)
        assert journal.queue.nodes() == [deletion(number).payload["id"] for number in (1, 2)]


@pytest.mark.autojump
async def test_events_wake_the_feed_and_bursts_become_one_entry(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    async with journal.running() as background:
        background.start_soon(journal.feed().run)
        await trio.sleep(100.0)
        for _ in range(20):
            await journal.tell(draft("note.updated", id=ONE))
        await trio.sleep(5.0)
        assert journal.queue.nodes() == [ONE]


@pytest.mark.autojump
async def test_first_start_queues_journal_events_instead_of_all_notes(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    async with journal.running():
        await journal.tell(draft("note.updated", id=TWO))
        await journal.feed().catch_up()
        assert journal.queue.nodes() == [TWO]


@pytest.mark.autojump
async def test_all_notes_are_queued_when_unread_events_were_pruned(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path, journal_size=10)
    async with journal.running():
        await journal.tell(draft("note.updated", id=ONE))
        await journal.feed().catch_up()
        journal.queue.triggers.clear()
        for _ in range(12):  # retention runs after every thousandth event
            await journal.tell(*(draft("task.updated", task_id="x") for _ in range(100)))
        assert journal.store.pruned_through() > (journal.store.cursor(CURSOR) or 0)
        await journal.feed().catch_up()
        assert journal.queue.triggers == [
            EnrichTrigger(trigger_type="note.updated", node_id=ONE),
            EnrichTrigger(trigger_type="note.updated", node_id=TWO),
        ]
        journal.queue.triggers.clear()
        await journal.tell(deletion(7))
        await journal.feed().catch_up()
        assert journal.queue.nodes() == [deletion(7).payload["id"]]
