"""Committed edge changes. Each has exactly one event, even after crashes of the memory actor."""

from __future__ import annotations

import apsw
import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from lithos.kernel.actors.mailboxes import ActorDown
from lithos.kernel.values.errors import InvalidInput, NotFound, StorageFailed, UpdateFailed
from lithos.notes.model.edges import EdgeFilter, ResolveConflict, UpsertEdge
from tests.fakes import START, Killed

pytestmark = pytest.mark.autojump

PLAIN = UpsertEdge(agent="ann", from_id="a", to_id="b", type="contradicts", weight=0.5, namespace="n")


def edge_to(to_id: str) -> UpsertEdge:
    return attrs.evolve(PLAIN, to_id=to_id)


async def test_change_and_its_event_are_durable_before_the_answer(desk):
    """behaviour 83"""
    async with desk.running():
        edge = await desk.ask(attrs.evolve(PLAIN, conflict_state="open"))
        (event,) = desk.journal.events_after(0)
        assert (event.draft.type, event.draft.agent, event.draft.tags) == ("edge.upserted", "ann", ())
        assert list(event.draft.payload.items()) == [
            ("edge_id", edge.id), ("from_id", "a"), ("to_id", "b"), ("type", "contradicts"),
            ("namespace", "n"), ("conflict_state", "open"),
        ]  # fmt: skip
        assert desk.edges.outbox() == []
        assert len(desk.memory._undelivered) == 0
        desk.clock.advance(1)
        assert (await desk.ask(PLAIN)).created_at == START
        assert desk.told() == [(edge.id, "open"), (edge.id, None)]


async def test_waiting_commands_share_one_commit_per_database(desk):
    async with desk.running():
        await desk.ask(PLAIN)
        before = desk.edges_switch.commits, desk.journal_switch.commits
        desk.gate.shut()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(desk.ask, edge_to("first"))
            await wait_all_tasks_blocked()
            for name in "cdefg":
                nursery.start_soon(desk.ask, edge_to(name))
            await wait_all_tasks_blocked()
            desk.gate.open()
        after = desk.edges_switch.commits, desk.journal_switch.commits
        assert (after[0] - before[0], after[1] - before[1]) == (4, 2)  # the extra commit clears the outbox
        assert sorted(desk.told()) == [(edge_id, None) for edge_id in sorted(desk.stored())]


@pytest.mark.parametrize(
    ("edge_id", "kind", "resolution", "winner", "refusal", "named"),
    [
        ("edge_none", "contradicts", "merged", None, NotFound, "edge_none"),
        ("edge_none", "contradicts", "superseded", None, NotFound, "edge_none"),
        ("edge_000000000001", "supports", "superseded", None, InvalidInput, "contradicts"),
        ("edge_000000000001", "contradicts", "superseded", None, InvalidInput, "winner_id"),
        ("edge_000000000001", "contradicts", "superseded", "", InvalidInput, "winner_id"),
        ("edge_000000000001", "contradicts", "superseded", "c", InvalidInput, "winner_id"),
    ],
)
async def test_refused_conflict_resolution_changes_and_journals_nothing(
    desk, edge_id, kind, resolution, winner, refusal, named
):
    """behaviour 85"""
    async with desk.running():
        edge = await desk.ask(attrs.evolve(PLAIN, type=kind))
        command = ResolveConflict(edge_id=edge_id, resolution=resolution, resolver="bob", winner_id=winner)
        async with trio.open_nursery() as nursery:  # the other commands in the batch succeed
            nursery.start_soon(desk.ask, edge_to("d"))
            with pytest.raises(refusal, match=named):
                await desk.ask(command)
        assert desk.edges.edges(EdgeFilter(to_id="b")) == [edge]
        assert len(desk.told()) == 2


async def test_full_disk_refuses_all_commands_but_later_changes_succeed(desk):
    """behaviour 85"""
    async with desk.running():
        edge = await desk.ask(PLAIN)
        desk.edges_switch.failure = apsw.FullError("database or disk is full")
        with pytest.raises(StorageFailed, match="disk is full"):
            await desk.ask(edge_to("c"))
        with pytest.raises(UpdateFailed, match="Nothing was changed"):
            await desk.ask(ResolveConflict(edge_id=edge.id, resolution="merged", resolver="bob"))
        desk.edges_switch.failure = None
        assert desk.edges.edges(EdgeFilter()) == [edge]
        assert desk.told() == [(edge.id, None)]
        await desk.ask(edge_to("c"))
        assert len(desk.told()) == 2


async def test_change_succeeds_and_keeps_its_event_when_journal_is_unwritable(desk):
    async with desk.running():
        desk.journal_switch.failure = apsw.FullError("full")
        edges = [await desk.ask(edge_to(name)) for name in "cde"]
        assert desk.told() == []
        assert len(desk.edges.outbox()) == len(desk.memory._undelivered) == 3
        await trio.sleep(10)
        desk.journal_switch.failure = None
        edges.append(await desk.ask(edge_to("f")))
        await trio.sleep(10)
        assert desk.told() == [(edge.id, None) for edge in edges]
        assert desk.edges.outbox() == []
        assert len(desk.memory._undelivered) == 0


async def test_events_missing_from_the_journal_are_reported_at_startup(desk):
    async with desk.running():
        desk.journal_switch.failure = apsw.FullError("full")
        await desk.ask(edge_to("c"))
        await desk.ask(edge_to("d"))
    assert desk.told() == []
    desk.reopen()
    await desk.run()
    assert desk.told() == [(edge_id, None) for edge_id in desk.stored()]
    assert desk.edges.outbox() == []


async def kill_at(desk, kill) -> None:
    """Submit a change whose batch never ends, because `kill` stops the process during the batch."""
    async with desk.killed():
        await desk.ask(PLAIN)
        kill()
        await desk.ask(edge_to("c"))


async def test_kill_between_change_and_journal_leaves_exactly_one_event(desk):
    await kill_at(desk, lambda: setattr(desk.journal_switch, "failure", Killed()))
    assert (len(desk.stored()), len(desk.told()), len(desk.edges.outbox())) == (2, 1, 1)
    await desk.run()
    assert desk.told() == [(edge_id, None) for edge_id in desk.stored()]
    desk.reopen()
    await desk.run()
    assert len(desk.told()) == 2


async def test_kill_between_journal_and_outbox_leaves_exactly_one_event(desk, monkeypatch):
    def clear_outbox(origins):
        raise Killed

    await kill_at(desk, lambda: monkeypatch.setattr(desk.edges, "clear_outbox", clear_outbox))
    assert (len(desk.stored()), len(desk.told()), len(desk.edges.outbox())) == (2, 2, 1)
    await desk.run()
    assert desk.told() == [(edge_id, None) for edge_id in desk.stored()]
    assert desk.edges.outbox() == []


async def test_kill_before_the_commit_leaves_no_change(desk):
    await kill_at(desk, lambda: setattr(desk.edges_switch, "failure", Killed()))
    await desk.run()
    assert (len(desk.stored()), len(desk.told())) == (1, 1)


@pytest.mark.parametrize("was_journalled", [False, True])
async def test_coordinator_crash_does_not_lose_or_duplicate_events(desk, monkeypatch, was_journalled):
    """Only the journal shows whether the event was stored before the crash."""
    real = desk.coordinator._commit

    def crash_once(*arguments):
        monkeypatch.setattr(desk.coordinator, "_commit", real)
        if was_journalled:
            real(*arguments)
            desk.coordinator._next_seq = desk.journal.next_seq()
        raise RuntimeError("a bug")

    async with desk.running():
        first = await desk.ask(PLAIN)
        monkeypatch.setattr(desk.coordinator, "_commit", crash_once)
        second = await desk.ask(edge_to("c"))
        third = await desk.ask(edge_to("d"))
        await trio.sleep(10)
        assert desk.told() == [(edge.id, None) for edge in (first, second, third)]
        assert desk.edges.outbox() == []


async def test_crash_during_delivery_does_not_duplicate_an_event(desk, monkeypatch):
    async with desk.running():
        desk.journal_switch.failure = apsw.FullError("full")
        await desk.ask(PLAIN)
        real = desk.memory._commit

        def crash_once(messages):
            monkeypatch.setattr(desk.memory, "_commit", real)
            raise RuntimeError("a bug")

        monkeypatch.setattr(desk.memory, "_commit", crash_once)
        with pytest.raises(ActorDown):
            await desk.ask(edge_to("c"))
        await trio.sleep(5)
        desk.journal_switch.failure = None
        await desk.ask(edge_to("d"))
        await trio.sleep(5)
        assert desk.told() == [(edge_id, None) for edge_id in desk.stored()]
        assert len(desk.memory._undelivered) == 0


async def test_outbox_that_was_not_cleared_is_cleared_later(desk, monkeypatch):
    def refuse(origins):
        raise apsw.FullError("full")

    async with desk.running():
        with monkeypatch.context() as patch:
            patch.setattr(desk.edges, "clear_outbox", refuse)
            await desk.ask(PLAIN)
            await desk.ask(edge_to("c"))
            assert len(desk.edges.outbox()) == 2
        await trio.sleep(5)
        assert desk.edges.outbox() == []
        assert desk.told() == [(edge_id, None) for edge_id in desk.stored()]
