"""Jumps of the system clock while a server runs, or between two server runs."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import Flush, MoveCursor
from lithos.events.journal.settled_clock import SettledClock
from lithos.events.reading.retention import Upkeep
from lithos.history.service.retention import HistoryUpkeep
from lithos.memory.enrich.worker import Enrichment
from lithos.memory.model.memory import FinalNode, Receipt, RecordRetrieval
from lithos.memory.retrieve.feedback import Learning
from lithos.notes.files.displaced import Displaced
from lithos.notes.model.scopes import WriteScopes, scopes_of_agents
from lithos.notes.opening import _last_written
from lithos.notes.writing.actor_writer import Writer
from lithos.notes.writing.deferred_removal import Keeper
from lithos.tasks.model.task import ClaimTimes
from tests.fakes import START
from tests.servers import Clock, Lithos, refusal, serving

FAR = {"days": 60 * 365}
#: Tables whose rows are deleted by age.
TABLES = {
    "history.db": ("versions",),
    "coordination.db": ("access_log", "claims", "cursors", "agents"),
    "stats.db": ("receipts",),
}


async def make_task(lithos: Lithos, title: str = "A task", **more: Any) -> str:
    answer = await lithos.call("lithos_task_create", title=title, agent="lead", **more)
    return str(answer["task_id"])


async def claim(lithos: Lithos, agent: str, task_id: str) -> dict[str, Any]:
    answer = await lithos.call("lithos_task_claim", task_id=task_id, aspect="work", agent=agent)
    assert isinstance(answer, dict)
    return answer


async def claim_end(lithos: Lithos, task_id: str) -> datetime:
    status = await lithos.call("lithos_task_status", task_id=task_id)
    (held,) = status["tasks"][0]["claims"]
    return datetime.fromisoformat(held["expires_at"])


async def types_after(lithos: Lithos, seq: int) -> list[str]:
    await lithos.server.get(Coordinator).mailbox.ask(Flush())
    return [event.draft.type for event in lithos.server.get(Coordinator)._store.events_after(seq)]


def test_running_claim_never_ends_later_than_the_longest_claim() -> None:
    times = ClaimTimes(longest_minutes=480)
    assert times.latest(START) == START + timedelta(hours=8)
    assert times.expiry(100_000, START) == times.latest(START)


@pytest.mark.parametrize("restarts", [False, True])
async def test_claim_ends_in_time_after_a_clock_setback(tmp_path: Path, restarts: bool) -> None:
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        right = clock.now
        clock.advance(**FAR)
        held = await make_task(lithos)
        assert (await claim(lithos, "ann", held))["success"]
        if not restarts:
            clock.now = right
            await check_claim(lithos, clock, held)
    if restarts:
        clock.now = right
        async with serving(tmp_path, clock=clock, settled=False) as lithos:
            await check_claim(lithos, clock, held)


async def check_claim(lithos: Lithos, clock: Clock, held: str) -> None:
    seq = lithos.server.get(Coordinator).head
    refused = await claim(lithos, "bob", held)
    assert "ann holds this aspect" in refusal(refused, "claim_failed")
    assert await claim_end(lithos, held) == clock.now + timedelta(minutes=480)
    clock.advance(minutes=480)
    assert (await claim(lithos, "bob", held))["success"]
    assert await types_after(lithos, seq) == ["task.claim_expired", "task.claimed"]


async def test_times_of_notes_and_tasks_never_decrease(
    tmp_path: Path,
) -> None:
    clock = Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        note = await lithos.create("Note", "one")
        done = await make_task(lithos)
        made = clock.text
        clock.advance(days=-400)
        for tool, change in (
            ("lithos_write", {"title": "Note", "content": "two"}),
            ("lithos_note_edit", {"op": "append", "text": "more"}),
            ("lithos_restore", {"version": 1}),
        ):
            answer = await lithos.call(tool, id=note, agent="a", **change)
            assert answer["status"] in ("updated", "restored"), answer
            metadata = (await lithos.read(note))["metadata"]
            assert metadata["created_at"] == metadata["updated_at"] == made
        assert metadata["version"] == 4
        await lithos.call("lithos_delete", id=note, agent="a")
        await lithos.call("lithos_restore", id=note, version=1, agent="a")
        metadata = (await lithos.read(note))["metadata"]
        assert (metadata["created_at"], metadata["updated_at"]) == (made, made)
        await lithos.call("lithos_task_complete", task_id=done, agent="lead")
        task = (await lithos.call("lithos_task_get", task_id=done))["task"]
        assert task["resolved_at"] == task["created_at"] == made
        events = list(lithos.server.get(Coordinator)._store.events_after(lithos.first_seq))
        assert {event.draft.timestamp for event in events[-5:]} == {clock.now}


def displaced_in(data: Path) -> Displaced:
    return Displaced(data / ".lithos" / "displaced")


async def prune_all(lithos: Lithos) -> None:
    server = lithos.server
    assert server.find(HistoryUpkeep) is not None
    assert server.find(Enrichment) is not None
    await server.get(Upkeep).look()
    await server.find(HistoryUpkeep).look()
    await server.find(Enrichment).sweep()


async def kept(lithos: Lithos) -> dict[str, int]:
    """Return the number of rows that are deleted by age, for each table."""
    await lithos.server.get(Coordinator).mailbox.ask(Flush())
    counts = {"displaced": len(displaced_in(lithos.data).list())}
    for file, tables in TABLES.items():
        # The connection is read-only. If one process has two copies of SQLite, the first copy that closes
        # removes the WAL.
        place = f"file:{lithos.data / '.lithos' / file}?mode=ro"
        with closing(sqlite3.connect(place, uri=True)) as connection:
            for table in tables:
                (counts[table],) = connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
    return counts


async def fill(lithos: Lithos, clock: Clock) -> None:
    """Create a row of every kind that is deleted by age."""
    note = await lithos.create("Note", "one words")
    other = await lithos.create("Other", "two words")
    for text in ("two", "three", "four"):
        clock.advance(seconds=1)
        await lithos.write("Note", f"{text} words", id=note)
    await lithos.call("lithos_delete", id=await lithos.create("Gone"), agent="a")
    await lithos.read(note)
    both = (FinalNode(note), FinalNode(other))
    receipt = Receipt(id="rcpt", ts=clock.now, query="q", limit=5, task_id="t", final_nodes=both)
    await lithos.server.get(Learning).submit(RecordRetrieval(receipt, (note, other)))
    await claim(lithos, "ann", await make_task(lithos))
    await lithos.server.get(Coordinator).mailbox.ask(MoveCursor("sub", 1))
    displaced_in(lithos.data).save("Note.md", b"of a person", clock.now)


@pytest.mark.parametrize("jump", [{"days": 400}, pytest.param(FAR, marks=pytest.mark.slow)])
async def test_clock_far_ahead_deletes_no_rows_even_after_restarts(
    tmp_path: Path, jump: dict[str, int]
) -> None:
    clock = Clock()
    async with serving(tmp_path, clock=clock) as lithos:
        await fill(lithos, clock)
        await prune_all(lithos)
        before = await kept(lithos)
        assert all(before.values()), before
        clock.advance(**jump)
        await prune_all(lithos)
        assert least(await kept(lithos), before)
    for days in (0, 1, -1, -jump["days"]):
        clock.advance(days=days)
        async with serving(tmp_path, clock=clock) as lithos:
            await prune_all(lithos)
            await lithos.create(f"At {clock.text} {days}")
            assert least(await kept(lithos), before)


def least(now: dict[str, int], before: dict[str, int]) -> bool:
    lost = {name: (before[name], count) for name, count in now.items() if count < before[name]}
    assert not lost
    return True


@pytest.mark.autojump
async def test_old_rows_are_deleted_some_time_after_a_long_absence() -> None:
    clock = Clock()
    last = clock.now
    clock.advance(days=365)
    settled = SettledClock(clock, last)
    assert settled() == last
    await trio.sleep(24 * 3_600)
    clock.advance(days=1)
    assert settled() == last + timedelta(days=24)
    for _ in range(15):
        await trio.sleep(24 * 3_600)
        clock.advance(days=1)
        settled()
    assert settled() == clock.now
    clock.advance(days=-400)
    assert settled() == clock.now
    clock.advance(days=400)
    assert settled() == clock.now


@pytest.mark.autojump
async def test_clock_that_was_behind_is_accepted_when_it_is_corrected() -> None:
    """A machine without a battery starts in 1970. Its clock stays there until a time server answers."""
    clock = Clock()
    right = clock.now
    clock.now = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    settled = SettledClock(clock, right - timedelta(hours=1))
    assert settled() == clock.now
    await trio.sleep(3_600)
    clock.now = right + timedelta(hours=1)
    assert settled() == clock.now


PAST = ("1970-01-01T00:00:00+00:00", "2016-01-01T00:00:00+00:00")


@pytest.mark.needs("proposals")
@pytest.mark.parametrize("past", PAST)
async def test_rows_with_past_times_survive_a_clock_correction(tmp_path: Path, past: str) -> None:
    """Behaviour 414: covers versions, displaced bytes and proposals, of old and new notes."""
    clock = Clock()
    right = clock.now
    async with serving(tmp_path, clock=clock) as lithos:
        old = await lithos.create("Old", "words")
        await prune_all(lithos)
    clock.now = datetime.fromisoformat(past)
    async with serving(tmp_path, clock=clock) as lithos:
        fresh = await lithos.create("Fresh", "first")
        for number in range(5):
            clock.advance(seconds=1)
            await lithos.write("Old", f"{number} words", id=old)
            await lithos.write("Fresh", f"{number} words", id=fresh)
        await lithos.call("lithos_delete", id=await lithos.create("Gone"), agent="a")
        proposal = await propose(lithos, old)
        keeper = lithos.server.get(Keeper)
        keeper.displaced.save("Old.md", b"of a person", keeper.stamp())
        before = await kept(lithos)
        await prune_all(lithos)
        clock.now = right + timedelta(hours=1)
        await check_kept(lithos, before, proposal)
    async with serving(tmp_path, clock=clock) as lithos:
        await check_kept(lithos, before, proposal)
        clock.advance(days=400)  # The rows are now old according to the system clock.
        assert lithos.server.find(HistoryUpkeep) is not None
        lithos.server.find(HistoryUpkeep)._clock = clock
        await prune_all(lithos)
        assert (await kept(lithos))["versions"] < before["versions"]


async def propose(lithos: Lithos, note: str) -> str:
    writer = lithos.server.get(Writer)
    writer.scopes = WriteScopes(agents=scopes_of_agents({"junior": {"propose": ["**"]}}))
    answer = await lithos.call("lithos_note_edit", id=note, op="append", text="more", agent="junior")
    assert answer["status"] == "proposed", answer
    return str(answer["proposal_id"])


async def check_kept(lithos: Lithos, before: dict[str, int], proposal: str) -> None:
    await prune_all(lithos)
    now = await kept(lithos)
    assert (now["versions"], now["displaced"]) == (before["versions"], before["displaced"])
    waiting = await lithos.call("lithos_proposals")
    assert [each["id"] for each in waiting["proposals"]] == [proposal]


def test_bytes_that_a_crash_displaced_count_as_recent(tmp_path: Path) -> None:
    """Behaviour 414: the server starts after a power failure. The clock of the machine starts in 1970."""
    assert _last_written(tmp_path).timestamp() == 0
    for name, time in (("history.db", 2_000), ("stats.db-wal", 3_000), ("lock", 4_000)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time, time))
    assert _last_written(tmp_path).timestamp() == 3_000
