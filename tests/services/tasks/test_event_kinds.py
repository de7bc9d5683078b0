"""Events of every kind in one order, each in the journal before its tool answers."""

from __future__ import annotations

from pathlib import Path

import trio
from trio.testing import wait_all_tasks_blocked

from lithos.config.sections import EventsConfig
from lithos.core.events import Event
from lithos.services.tasks.event_stream import EventFilter
from tests.servers import Clock, Lithos, serving
from tests.tools.task_calls import call, create


async def do_everything(lithos: Lithos) -> list[str]:
    """One change of many kinds; the types of their events."""
    note = await lithos.create("First")
    await lithos.write("First", "Other text.", id=note)
    await lithos.call("lithos_agent_register", id="eve", name="Eve")
    task = (await lithos.call("lithos_task_create", title="t", agent="eve"))["task_id"]
    await lithos.call("lithos_task_claim", task_id=task, agent="eve", aspect="all")
    await lithos.call("lithos_finding_post", task_id=task, agent="eve", summary="s", knowledge_id=note)
    await lithos.call("lithos_task_release", task_id=task, agent="eve", aspect="all")
    await lithos.call("lithos_task_complete", task_id=task, agent="eve")
    await lithos.call("lithos_delete", id=note, agent="eve")
    return [
        "note.created", "note.updated", "agent.registered", "task.created", "task.ready", "task.claimed",
        "finding.posted", "task.released", "task.completed", "note.deleted",
    ]  # fmt: skip


async def test_clients_see_all_kinds_of_events_in_the_one_order_of_seqs(tmp_path: Path) -> None:
    """behaviours 186, 187"""
    async with serving(tmp_path) as lithos:
        streams = [await lithos.server.streams.open(None, EventFilter()) for _ in range(2)]
        due = await do_everything(lithos)
        assert [type for type, _ in lithos.events()] == due
        for stream in [*streams, await lithos.server.streams.open(str(lithos.first_seq), EventFilter())]:
            got = [await stream.receive() for _ in due]
            assert [event.draft.type for event in got if isinstance(event, Event)] == due
            seqs = [event.seq for event in got if isinstance(event, Event)]
            assert seqs == list(range(seqs[0], seqs[0] + len(due)))
            stream.close()
        # Every event is journalled before its tool answers.
        for number in range(5):
            await lithos.create(f"Note {number}")
            assert len(lithos.events()) == len(due) + number + 1


async def test_disabled_events_deliver_nothing(tmp_path: Path) -> None:
    """behaviour 129"""
    clock = Clock()
    async with serving(tmp_path, clock=clock, events=EventsConfig(enabled=False)) as lithos:
        stream = await lithos.server.streams.open(None, EventFilter())
        await do_everything(lithos)
        # Tasks are given, expire and unblock others all the same.
        task = await create(lithos)
        waiting = await create(lithos, depends_on=[task])
        for _ in range(2):
            assert (await call(lithos, "task_next", ttl_minutes=1))["task"]["id"] == task
            clock.advance(minutes=1)
        assert (await call(lithos, "task_complete", task_id=task))["unblocked"] == [waiting]
        assert lithos.events() == []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.receive)
            await wait_all_tasks_blocked()
            assert nursery.child_tasks, "an event came"
            nursery.cancel_scope.cancel()
