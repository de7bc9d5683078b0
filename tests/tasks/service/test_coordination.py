"""Task commands as transactions: a command and all its events are committed together or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.events.journal.broadcaster import Broadcaster
from lithos.events.journal.coordinator import Coordinator
from lithos.tasks.model.task import Task
from lithos.tasks.service.coordination import TaskView
from lithos.tasks.tools_rows import view_rows
from tests.memory.tools.task_calls import call, create, gate, ids, link
from tests.servers import MISSING_ID, Clock, Lithos, refusal, serving

TABLES = ("tasks", "claims", "findings", "task_edges", "events", "agents", "counters")
TABLES += ("ready_tasks", "claim_ends", "timers")


def dump(lithos: Lithos) -> dict[str, list[Any]]:
    """Return all committed data."""
    store = lithos.server.get(Coordinator)._store
    return {table: store._reader.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}


def types(lithos: Lithos) -> list[str]:
    return [event for event, _ in lithos.events()]


# -- events -----------------------------------------------------------------------------------------


async def test_every_task_operation_announces_exactly_the_specified_events(tmp_path: Path) -> None:
    """behaviours 127, 186"""
    async with serving(tmp_path, clock=Clock(), settled=False) as lithos:
        task = await create(lithos, "Größe")
        await call(lithos, "task_update", task_id=task, tags=["x"])
        fence = (await call(lithos, "task_claim", task_id=task, aspect="code", agent="bob"))["fence"]
        await call(lithos, "task_renew", task_id=task, aspect="code", agent="bob")
        await call(lithos, "task_release", task_id=task, aspect="code", agent="bob")
        bare = (await call(lithos, "finding_post", task_id=task, summary="s"))["finding_id"]
        named = (await call(lithos, "finding_post", task_id=task, summary="s", knowledge_id="n"))[
            "finding_id"
        ]
        await call(
            lithos, "task_complete", task_id=task, outcome="ok", cited_nodes=["ä", "b"], misleading_nodes=[]
        )
        await call(lithos, "task_reopen", task_id=task)
        await call(lithos, "task_complete", task_id=task, receipt_id='r"')
        await call(lithos, "task_reopen", task_id=task, agent="bob")
        await call(lithos, "task_cancel", task_id=task, reason="why")
        await call(lithos, "task_reopen", task_id=task)
        await call(lithos, "task_cancel", task_id=task)
        spawned = (await call(lithos, "task_spawn", source_task_id=task, title="New"))["task_id"]
        await link(lithos, spawned, await create(lithos, "Other"))
        other = lithos.events()[-1][1]["task_id"]
        by_bob = {"task_id": task, "agent": "bob"}
        by_ann = {"task_id": task, "agent": "ann"}
        null = {"cited_nodes": "null", "misleading_nodes": "null", "receipt_id": "null"}
        expected = [
            ("task.created", {"task_id": task, "title": "Größe"}),
            ("task.ready", {"task_id": task, "title": "Größe"}),
            ("task.updated", {"task_id": task}),
            ("task.claimed", by_bob | {"aspect": "code", "fence": fence}),
            ("task.released", by_bob | {"aspect": "code"}),
            ("finding.posted", {"finding_id": bare} | by_ann | {"summary": "s"}),
            ("finding.posted", {"finding_id": named} | by_ann | {"summary": "s", "knowledge_id": "n"}),
            (
                "task.completed",
                by_ann | {"outcome": "ok"} | null | {"cited_nodes": '["ä", "b"]', "misleading_nodes": "[]"},
            ),
            ("task.reopened", by_ann | {"prior_status": "completed", "prior_outcome": "ok"}),
            ("task.completed", by_ann | {"outcome": None} | null | {"receipt_id": '"r\\""'}),
            ("task.reopened", by_bob | {"prior_status": "completed", "prior_outcome": None}),
            ("task.cancelled", by_ann | {"reason": "why"}),
            ("task.reopened", by_ann | {"prior_status": "cancelled", "prior_outcome": None}),
            ("task.cancelled", by_ann | {"reason": None}),
            ("task.created", {"task_id": spawned, "title": "New"}),
            ("task.ready", {"task_id": spawned, "title": "New"}),
            ("task.created", {"task_id": other, "title": "Other"}),
            ("task.ready", {"task_id": other, "title": "Other"}),
        ]
        assert [(kind, list(payload.items())) for kind, payload in lithos.events()] == [
            (kind, list(payload.items())) for kind, payload in expected
        ]
        store = lithos.server.get(Coordinator)._store
        drafts = [event.draft for event in store.events_after(lithos.first_seq)]
        assert [draft.tags for draft in drafts] == [()] * 2 + [("x",)] * (len(drafts) - 4) + [()] * 2
        assert [draft.agent for draft in drafts[:5]] == ["ann", "ann", "ann", "bob", "bob"]


# -- registration -----------------------------------------------------------------------------------


async def test_task_change_registers_the_agent_even_when_refused(tmp_path: Path) -> None:
    """behaviours 91, 127"""
    refused: dict[str, dict[str, Any]] = {
        "task_create": {"title": "T", "depends_on": [MISSING_ID]},
        "task_update": {"task_id": MISSING_ID, "title": "T"},
        "task_claim": {"task_id": MISSING_ID, "aspect": "x"},
        "task_renew": {"task_id": MISSING_ID, "aspect": "x"},
        "task_release": {"task_id": MISSING_ID, "aspect": "x"},
        "task_complete": {"task_id": MISSING_ID},
        "task_cancel": {"task_id": MISSING_ID},
        "task_reopen": {"task_id": MISSING_ID},
        "task_spawn": {"source_task_id": MISSING_ID, "title": "T"},
        "task_edge_upsert": {"from_task_id": MISSING_ID, "to_task_id": "x", "type": "blocks"},
        "finding_post": {"task_id": MISSING_ID, "summary": "s"},
    }
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        for tool, arguments in refused.items():
            clock.advance(seconds=1)
            answer = await lithos.call(f"lithos_{tool}", agent=f"by {tool}", **arguments)
            assert answer["status"] == "error", answer
        seen = (await lithos.call("lithos_agent_list"))["agents"]
        assert [agent["id"] for agent in seen] == [f"by {tool}" for tool in reversed(refused)]
        assert all(agent["first_seen_at"] == agent["last_seen_at"] for agent in seen)
        assert lithos.events() == []
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        assert (await lithos.call("lithos_agent_list"))["agents"] == seen


async def test_task_reads_and_invalid_arguments_register_no_agent(tmp_path: Path) -> None:
    """behaviour 91"""
    async with serving(tmp_path, settled=False) as lithos:
        task = await create(lithos)
        await call(lithos, "task_list", agent="reader")
        await lithos.call("lithos_task_update", task_id=task, agent="idle")
        await lithos.call("lithos_task_claim", task_id=task, aspect=" ", agent="blank")
        agents = (await lithos.call("lithos_agent_list"))["agents"]
        assert [agent["id"] for agent in agents] == ["ann"]


# -- complete or not at all -------------------------------------------------------------------------


@contextmanager
def refusing_to_commit(lithos: Lithos) -> Iterator[None]:
    """Let every commit fail after its data has been written."""
    writer = lithos.server.get(Coordinator)._store._writer
    writer.set_commit_hook(lambda: True)
    yield
    writer.set_commit_hook(None)


OPERATIONS: list[tuple[str, dict[str, Any]]] = [
    ("task_create", {"title": "T", "depends_on": ["{open}"], "parent_task_id": "{open}"}),
    ("task_update", {"task_id": "{open}", "title": "New", "metadata": {"k": 1}}),
    ("task_next", {"aspect": "new", "task_id": "{open}"}),
    ("task_claim", {"task_id": "{open}", "aspect": "new"}),
    ("task_renew", {"task_id": "{open}", "aspect": "code"}),
    ("task_release", {"task_id": "{open}", "aspect": "code"}),
    ("task_complete", {"task_id": "{open}"}),
    ("task_cancel", {"task_id": "{open}"}),
    ("task_reopen", {"task_id": "{closed}"}),
    ("task_spawn", {"source_task_id": "{open}", "title": "S"}),
    ("task_edge_upsert", {"from_task_id": "{open}", "to_task_id": "{closed}", "type": "blocks"}),
    ("finding_post", {"task_id": "{open}", "summary": "s"}),
]


async def test_failed_commit_stores_neither_change_nor_event(tmp_path: Path) -> None:
    """behaviour 187"""
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        for tool, arguments in OPERATIONS:
            task, closed = await create(lithos), await create(lithos)
            await call(lithos, "task_claim", task_id=task, aspect="code")
            await call(lithos, "task_complete", task_id=closed)
            clock.advance(minutes=1)
            names = {"{open}": task, "{closed}": closed}
            given = {
                key: [names[item] for item in value]
                if isinstance(value, list)
                else names.get(str(value), value)
                for key, value in arguments.items()
            }
            before, head = dump(lithos), lithos.server.get(Broadcaster).head
            with refusing_to_commit(lithos):
                answer = await lithos.call(f"lithos_{tool}", agent="ann", **given)
                assert "Nothing was changed" in refusal(answer, "internal_error"), tool
                assert list(answer) == ["status", "code", "message"]
                assert dump(lithos) == before, tool
                assert lithos.server.get(Broadcaster).head == head
            answer = await call(lithos, tool, **given)  # the same call succeeds once commits succeed again
            assert {"success", "task_id", "finding_id", "fence"} & answer.keys()
            assert dump(lithos) != before, tool
        seqs = [event.seq for event in lithos.server.get(Coordinator)._store.events_after(0)]
        assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))


async def test_refused_command_in_a_batch_undoes_only_its_own_changes(tmp_path: Path) -> None:
    """behaviours 127, 186"""
    async with serving(tmp_path, settled=False) as lithos:
        results: dict[int, Any] = {}

        async def work(number: int) -> None:
            before = [MISSING_ID] if number % 2 else []
            results[number] = await lithos.call(
                "lithos_task_create", title=str(number), agent="ann", depends_on=before
            )

        async with trio.open_nursery() as nursery:
            for number in range(30):
                nursery.start_soon(work, number)
        assert {number for number, answer in results.items() if "code" in answer} == set(range(1, 30, 2))
        made = {answer["task_id"] for answer in results.values() if "code" not in answer}
        assert set(ids(await call(lithos, "task_list"))) == made
        assert types(lithos) == ["task.created", "task.ready"] * 15
        assert lithos.server.get(Coordinator).mailbox.stats.batches < 30  # many commands shared a commit


# -- races and fences -------------------------------------------------------------------------------


async def test_exactly_one_of_64_competing_agents_gets_an_aspect(tmp_path: Path) -> None:
    """behaviours 94, 96, 174, 192: the same is true after an expired claim, but the fence is then higher."""
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        task = await create(lithos)
        answers: dict[str, Any] = {}
        fences: list[int] = []

        async def race(agent: str) -> None:
            answers[agent] = await lithos.call("lithos_task_claim", task_id=task, aspect="code", agent=agent)

        for agents in (64, 16, 16):
            async with trio.open_nursery() as nursery:
                for number in range(agents):
                    nursery.start_soon(race, f"a{number}")
            (winner,) = [agent for agent, answer in answers.items() if answer.get("success")]
            won = answers.pop(winner)
            fences.append(won["fence"])
            for answer in answers.values():
                assert refusal(answer, "claim_failed")
                assert list(answer.items())[3:] == [
                    ("reason", "held"), ("held_by", winner), ("expires_at", won["expires_at"]),
                ]  # fmt: skip
            if agents == 64:
                assert types(lithos) == ["task.created", "task.ready", "task.claimed"]
            answers.clear()
            clock.advance(hours=2)
        assert fences == sorted(set(fences))
        clock.advance(hours=-2)
        (row,) = (await call(lithos, "task_status", task_id=task))["tasks"]
        assert [claim["agent"] for claim in row["claims"]] == [winner]


async def claim(lithos: Lithos, agent: str) -> int:
    task = await create(lithos)
    fence: int = (await call(lithos, "task_claim", task_id=task, aspect="code", agent=agent))["fence"]
    return fence


def delete_database(private: Path, _: Path) -> None:
    for file in private.glob("coordination.db*"):
        file.unlink()


def put_copy_back(private: Path, copy: Path) -> None:
    delete_database(private, copy)
    shutil.copy(copy, private / "coordination.db")


@pytest.mark.parametrize("accident", [delete_database, put_copy_back])
async def test_fence_is_never_reused_after_a_loss_or_restore(
    tmp_path: Path, accident: Callable[[Path, Path], None]
) -> None:
    """behaviour 191"""
    private, copy = tmp_path / ".lithos", tmp_path / "copy.db"
    async with serving(tmp_path, settled=False) as lithos:
        fences = [await claim(lithos, "ann")]
    shutil.copy(private / "coordination.db", copy)
    async with serving(tmp_path, settled=False) as lithos:
        fences += [await claim(lithos, "ann") for _ in range(20)]
    accident(private, copy)
    async with serving(tmp_path, settled=False) as lithos:
        fences += [await claim(lithos, "bob") for _ in range(3)]
    assert fences == sorted(set(fences))


# -- very many tasks --------------------------------------------------------------------------------


async def test_other_work_continues_while_many_tasks_are_serialised() -> None:
    """behaviour 100: the rows of ten thousand tasks are created in slices."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    views = [
        TaskView(Task(id=str(n), title="T", created_by="a", created_at=now), claims=()) for n in range(10_000)
    ]
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        rows = await view_rows(views)
        nursery.cancel_scope.cancel()
    assert [row["id"] for row in rows] == [str(n) for n in range(10_000)]
    assert turns >= 30


async def test_gate_at_the_end_of_a_long_chain_is_found(tmp_path: Path) -> None:
    """behaviours 110, 111"""
    async with serving(tmp_path, settled=False) as lithos:
        first = before = await gate(lithos)
        for number in range(60):
            task = await create(lithos, str(number))
            await link(lithos, before, task, "waits_on_gate" if before == first else "blocks")
            before = task
        assert refusal(await link(lithos, before, first), "cycle")
        blocked = (await call(lithos, "task_blocked", limit=100))["tasks"]
        assert [row["blockers"][0]["kind"] for row in blocked] == ["task"] * 59 + ["gate"]
        assert await call(lithos, "task_ready") == {"tasks": [], "total": 0}
