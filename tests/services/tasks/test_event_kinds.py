"""Events of every kind in one order, each in the journal before its tool answers."""

from __future__ import annotations

from pathlib import Path

from lithos.core.events import Event
from lithos.services.tasks.event_stream import EventFilter
from tests.servers import Lithos, serving


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
