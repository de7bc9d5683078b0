"""Coordinator: one order of events, group commits, and a database that refuses writes."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from lithos.events.journal import commits
from lithos.events.journal import coordinator as module
from lithos.events.journal.messages import (
    AppendEvents,
    ArchiveAgent,
    Flush,
    Journalled,
    RegisterAgent,
    RegisteredAgent,
)
from lithos.events.model.agents import READ, SEARCH_RESULT, AuditRow
from lithos.kernel.values.errors import StorageFailed
from lithos.kernel.values.events import AGENT_REGISTERED, EventDraft
from tests.fakes import START, ask_together, subscribed
from tests.kernel.actors.desks import CoordinatorDesk

pytestmark = pytest.mark.autojump


class Desk(CoordinatorDesk):
    """A coordinator whose journal a test can read. A test can also send messages in one batch."""

    async def together(self, *messages) -> list[object]:
        """Return the replies and refusals for messages that are sent in one batch."""
        return await ask_together(self.mailbox.ask, self.gate, Flush(), *messages)

    def journal(self) -> list[str]:
        return [str(event.draft.payload.get("n", event.draft.type)) for event in self.store.events_after(0)]

    def seqs(self) -> list[int]:
        return [event.seq for event in self.store.events_after(0)]


@pytest.fixture
def desk(tmp_path):
    desk = Desk(tmp_path / "coordination.db")
    yield desk
    desk.store.close()


def make_append(*numbers: int) -> AppendEvents:
    return AppendEvents(
        tuple(EventDraft(type="note.updated", agent="a", payload={"n": n}, timestamp=START) for n in numbers)
    )


def make_registration(agent: str, **fields) -> RegisterAgent:
    return RegisterAgent(agent, fields.get("name"), fields.get("type"), fields.get("metadata"))


def row(n: int, operation: str = READ) -> AuditRow:
    return AuditRow("a", f"doc{n}", operation, START)


# -- order of events and group commit ---------------------------------------------------------------


async def test_sequence_number_increases_over_all_kinds_of_events(desk):
    """behaviour 186: listeners get events in journal order."""
    async with desk.served():
        with subscribed(desk.broadcaster) as subscription:
            replies = [
                await desk.mailbox.ask(make_append(1, 2)),
                await desk.mailbox.ask(make_registration("a")),
                await desk.mailbox.ask(make_append(3)),
            ]
    seqs = desk.seqs()
    assert seqs == sorted(set(seqs))
    assert len(seqs) == 4
    assert replies == [seqs[1], RegisteredAgent(created=True), seqs[3]], (
        "the seq of the last event of each message"
    )
    assert [event.seq async for event in subscription.events] == seqs
    assert desk.coordinator.head == seqs[-1]


async def test_waiting_commands_are_committed_in_one_transaction(desk):
    messages = [make_append(n) if n % 2 else make_registration(f"agent{n}") for n in range(100)]
    async with desk.served():
        assert None not in await desk.together(*messages)
    assert desk.switch.commits <= 3
    assert len(desk.seqs()) == 100
    assert len(desk.coordinator.agents) == 50


async def test_event_is_journalled_before_any_listener_gets_it(desk):
    """behaviour 187: the caller also gets its reply only after the journal entry."""
    desk.gate.shut()
    async with desk.served() as nursery:
        with subscribed(desk.broadcaster) as subscription:
            nursery.start_soon(desk.mailbox.ask, make_append(1))
            await wait_all_tasks_blocked()
            with pytest.raises(trio.WouldBlock):
                subscription.events.receive_nowait()
            desk.gate.open()
            assert (await subscription.events.receive()).seq in desk.seqs()


async def test_old_events_are_pruned_regularly(tmp_path, monkeypatch):
    monkeypatch.setattr(commits, "PRUNE_EVERY", 20)
    desk = Desk(tmp_path / "c.db", journal_size=10)
    async with desk.served():
        for n in range(45):
            await desk.mailbox.ask(make_append(n))
    assert 10 <= desk.store.event_count() <= 30
    assert desk.store.pruned_through() == desk.seqs()[0] - 1
    desk.store.close()


async def test_old_events_are_pruned_even_with_frequent_restarts(tmp_path):
    desk = Desk(tmp_path / "c.db", journal_size=5)
    for n in range(10):
        async with desk.served():
            await desk.mailbox.ask(make_append(n))
        desk.store.close()
        desk.open()
    assert desk.store.event_count() == 5
    desk.store.close()


# -- agents -----------------------------------------------------------------------------------------


async def test_two_registrations_in_one_batch_create_one_agent(desk):
    """behaviour 90"""
    async with desk.served():
        replies = await desk.together(make_registration("a", name="x"), make_registration("a", name="y"))
    assert replies == [RegisteredAgent(created=True), RegisteredAgent(created=False)]


async def test_agent_with_a_namesake_in_one_batch_gets_its_id(desk):
    """behaviour 336"""
    async with desk.served():
        replies = await desk.together(make_registration("a", name="Ann"), make_registration("b", name="ann"))
    assert replies == [RegisteredAgent(created=True), RegisteredAgent(created=True, namesake="a")]


async def test_action_while_an_agent_is_archived_keeps_it_active(desk):
    """behaviour 333"""
    desk.coordinator.touch("a")
    desk.gate.shut()
    async with desk.served() as nursery:
        nursery.start_soon(desk.mailbox.ask, ArchiveAgent("a", by="b"))
        await wait_all_tasks_blocked()
        desk.clock.advance(5)
        desk.coordinator.touch("a")
        desk.gate.open()
        await trio.sleep(2)
        assert desk.coordinator.agents["a"].archived_at is None
    (agent,) = desk.store.agents()
    assert agent.archived_at is None


async def test_clock_setback_does_not_move_last_seen_back(desk):
    desk.coordinator.touch("a")
    desk.clock.advance(-3600)
    desk.coordinator.touch("a")
    assert desk.coordinator.agents["a"].last_seen_at == START


async def test_action_during_a_registration_updates_last_seen(desk):
    desk.gate.shut()
    async with desk.served() as nursery:
        nursery.start_soon(desk.mailbox.ask, make_registration("a", name="Ann"))
        await wait_all_tasks_blocked()
        later = desk.clock.advance(5)
        desk.coordinator.touch("a")
        desk.gate.open()
        await trio.sleep(2)
        assert desk.coordinator.agents["a"].name == "Ann"
        assert desk.coordinator.agents["a"].last_seen_at == later
    (agent,) = desk.store.agents()
    assert (agent.name, agent.last_seen_at) == ("Ann", later)


async def test_agents_and_read_counts_survive_a_restart(desk):
    async with desk.served():
        desk.coordinator.touch("a")
        desk.coordinator.record_access([row(1), row(1), row(1, SEARCH_RESULT)])
        assert desk.coordinator.reads_of("doc1") == 2
    desk.store.close()
    desk.open()
    assert set(desk.coordinator.agents) == {"a"}
    assert desk.coordinator.reads_of("doc1") == 2
    assert desk.coordinator.reads_of("doc2") == 0


# -- access rows ------------------------------------------------------------------------------------


def audited(desk: Desk) -> list[str]:
    return [str(r[2]) for r in reversed(desk.store.audit(agent=None, doc=None, after=None, limit=1000))]


async def test_accesses_are_stored_within_a_second_without_messages(desk):
    async with desk.served():
        desk.coordinator.record_access([row(1)])
        await trio.sleep(1)
        assert audited(desk) == ["doc1"]


async def test_idle_coordinator_commits_nothing(desk):
    async with desk.served():
        await trio.sleep(60)
    assert desk.switch.commits == 0


async def test_remaining_rows_are_stored_when_the_mailbox_ends(desk):
    async with desk.served():
        desk.coordinator.record_access([row(1)])
        desk.coordinator.touch("late")
    assert audited(desk) == ["doc1"]
    assert [agent.id for agent in desk.store.agents()] == ["late"]


async def test_accesses_and_touches_survive_a_failed_commit_in_order(desk):
    async with desk.served():
        desk.failing = True
        desk.coordinator.record_access([row(1)])
        desk.coordinator.touch("a")
        await trio.sleep(3)
        desk.coordinator.record_access([row(2), row(3)])
        await trio.sleep(3)
        assert desk.coordinator.failure
        desk.failing = False
        await trio.sleep(1)
        assert desk.coordinator.failure is None
        assert audited(desk) == ["doc1", "doc2", "doc3"]
        assert [agent.id for agent in desk.store.agents()] == ["a"]


async def test_accesses_during_a_commit_are_stored_exactly_once(desk):
    async with desk.served() as nursery:
        desk.coordinator.record_access([row(1)])
        desk.gate.shut()
        nursery.start_soon(desk.mailbox.ask, Flush())
        await wait_all_tasks_blocked()
        desk.coordinator.record_access([row(2)])
        desk.gate.open()
        await trio.sleep(2)
    assert audited(desk) == ["doc1", "doc2"]


async def test_full_backlog_keeps_only_the_newest_accesses(desk, monkeypatch):
    monkeypatch.setattr(module, "AUDIT_BACKLOG", 3)
    desk.store.close()
    desk.open()
    desk.failing = True
    async with desk.served():
        for n in range(5):
            desk.coordinator.record_access([row(n)])
            await trio.sleep(1)
        desk.failing = False
    assert audited(desk) == ["doc2", "doc3", "doc4"]


# -- refused writes --------------------------------------------------------------------------------


async def test_failed_journal_write_fails_no_operation_and_keeps_order(desk):
    """behaviour 128: the events are written again in order, and each event only once."""
    async with desk.served():
        with subscribed(desk.broadcaster) as subscription:
            before = await desk.mailbox.ask(make_append(0))
            desk.failing = True
            assert await desk.mailbox.ask(make_append(1, 2)) is Journalled.LATER
            assert await desk.mailbox.ask(make_append(3)) is Journalled.LATER
            assert "full" in desk.coordinator.failure
            assert desk.journal() == ["0"]
            desk.failing = False
            after = await desk.mailbox.ask(make_append(4))
            assert desk.journal() == ["0", "1", "2", "3", "4"]
            assert after > before
            assert desk.coordinator.failure is None
            await trio.sleep(5)
    assert desk.journal() == ["0", "1", "2", "3", "4"]
    assert [event.draft.payload["n"] async for event in subscription.events] == [0, 1, 2, 3, 4]


async def test_unwritten_events_are_retried_without_new_messages(desk):
    """behaviour 128"""
    async with desk.served():
        desk.failing = True
        await desk.mailbox.ask(make_append(1))
        await trio.sleep(10)
        desk.failing = False
        await trio.sleep(1)
        assert desk.journal() == ["1"]


async def test_unwritten_events_are_retried_when_the_mailbox_ends(desk):
    desk.failing = True
    async with desk.served():
        await desk.mailbox.ask(make_append(1))
        desk.failing = False
    assert desk.journal() == ["1"]


async def test_registration_that_cannot_be_stored_changes_nothing(desk):
    async with desk.served():
        await desk.mailbox.ask(make_registration("known", name="before"))
        desk.failing = True
        for agent in ("new", "known"):
            with pytest.raises(StorageFailed, match="Nothing was changed"):
                await desk.mailbox.ask(make_registration(agent, name="after"))
        assert set(desk.coordinator.agents) == {"known"}
        assert desk.coordinator.agents["known"].name == "before"
        desk.failing = False
        await desk.mailbox.ask(make_append(1))
    assert desk.journal() == [AGENT_REGISTERED, "1"]
    assert [(agent.id, agent.name) for agent in desk.store.agents()] == [("known", "before")]


async def test_failed_batch_refuses_registrations_and_keeps_the_event_order(desk):
    desk.failing = True
    async with desk.served():
        first, refused, second = await desk.together(make_append(1), make_registration("r"), make_append(2))
        desk.failing = False
        await trio.sleep(1)
    assert (first, type(refused), second) == (Journalled.LATER, StorageFailed, Journalled.LATER)
    assert desk.journal() == ["1", "2"]
    assert desk.store.agents() == []


async def test_crash_keeps_queued_messages_in_order(desk, monkeypatch):
    real, crashes = desk.store.append_events, [1]

    def append_events(events):
        if crashes and events:
            crashes.pop()
            raise RuntimeError("a bug")
        real(events)

    monkeypatch.setattr(desk.store, "append_events", append_events)
    desk.gate.shut()
    async with desk.served():
        doomed = await desk.mailbox.post(make_append(1))
        await wait_all_tasks_blocked()
        queued = [await desk.mailbox.post(make_append(n)) for n in (2, 3)]
        desk.gate.open()
        with pytest.raises(Exception, match="a bug"):
            await doomed.reply()
        seqs = [await envelope.reply() for envelope in queued]
    assert desk.seqs() == seqs == sorted(seqs)
    assert desk.mailbox.stats.restarts == 1
