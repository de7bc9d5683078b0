"""Kill -9 while the enrich worker learns from completed tasks."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import pytest
import trio

from tests.e2e.clients import WireClient
from tests.e2e.process import Lithos, running_lithos, start_lithos
from tests.servers import put_note

TASKS = 160
NOTES = 20
KILLS = (15, 70)
LONG_AGO = "2026-01-01T00:00:00.000000+00:00"


def hurry(data: Path, minutes: float) -> None:
    (data / "config.yaml").write_text(f"lcma: {{enrich_drain_interval_minutes: {minutes}}}\n")


async def complete_tasks(server: Lithos, first: int, count: int) -> list[str]:
    tasks = []
    async with WireClient.open(server.address) as client:
        for number in range(first, first + count):
            answer = await client.call("lithos_task_create", title=f"Task {number}", agent="a")
            await client.call("lithos_task_complete", task_id=answer["task_id"], agent="a")
            tasks.append(answer["task_id"])
    return tasks


def remember(data: Path, tasks: list[str], notes: list[str]) -> Counter[str]:
    """Give each task a working memory of two notes, used twice; how often each note is in one."""
    used = Counter[str]()
    with closing(sqlite3.connect(data / ".lithos" / "stats.db")) as database, database:
        for number, task in enumerate(tasks):
            for note in notes[2 * number % NOTES :][:2]:
                database.execute(
                    "INSERT INTO working_memory(task_id,node_id,activation_count,first_seen_at,last_seen_at)"
                    " VALUES(?,?,2,?,?)",
                    (task, note, LONG_AGO, LONG_AGO),
                )
                used[note] += 1
    return used


def consolidated(data: Path) -> int:
    path = data / ".lithos" / "stats.db"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        return int(database.execute("SELECT COUNT(*) FROM task_consolidation_log").fetchone()[0])


async def until_queued(data: Path, tasks: int) -> None:
    """Wait for the feed, which also creates the database."""
    path, count = data / ".lithos" / "stats.db", 0
    with trio.fail_after(60):
        while count < tasks:
            await trio.sleep(0.05)
            with (
                suppress(sqlite3.OperationalError),  # not there yet
                closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database,
            ):
                (count,) = database.execute(
                    "SELECT COUNT(*) FROM enrich_queue WHERE task_id IS NOT NULL"
                ).fetchone()


async def until_consolidated(data: Path, tasks: int) -> int:
    with trio.fail_after(60):
        while (done := consolidated(data)) < tasks:
            await trio.sleep(0.002)
    return done


@pytest.mark.slow
@pytest.mark.deadline(120)
@pytest.mark.nightly
async def test_kills_during_enrichment_count_no_consolidation_twice_and_lose_none(tmp_path: Path) -> None:
    """behaviours 155, 190"""
    data = tmp_path / "data"
    for number in range(NOTES):
        put_note(data, f"{number:02}.md", f"# Note {number}\n\ntext\n")
    hurry(data, 1000)
    with running_lithos(data) as server:
        tasks = await complete_tasks(server, 0, TASKS)
        async with WireClient.open(server.address) as client:
            notes = [row["id"] for row in (await client.call("lithos_list", limit=NOTES))["items"]]
        await until_queued(data, TASKS)
    used = remember(data, tasks, notes)
    hurry(data, 0.001)
    for kill in KILLS:
        server = start_lithos(data)
        try:
            done = await until_consolidated(data, kill)
            server.kill()
        finally:
            server.close()
        assert done < TASKS, "the kill came too late to show anything"
    with running_lithos(data) as server:
        await until_consolidated(data, TASKS)
    with closing(sqlite3.connect(data / ".lithos" / "stats.db")) as database:
        salience = dict(database.execute("SELECT node_id, salience FROM node_stats"))
        attempts = database.execute("SELECT MAX(attempts), COUNT(*) FROM enrich_queue").fetchone()
    with closing(sqlite3.connect(data / ".lithos" / "edges.db")) as database:
        weights = [row[0] for row in database.execute("SELECT weight FROM edges WHERE type='related_to'")]
    assert salience == pytest.approx({note: 0.5 + 0.01 * times for note, times in used.items()})
    assert weights == pytest.approx([0.03 * 2 * TASKS / NOTES] * (NOTES // 2))
    assert attempts[0] <= 3
    print(f"killed after {KILLS} of {TASKS} tasks; at most {attempts[0]} attempts of {attempts[1]} rows")  # noqa: T201
