"""Size limits of `coordination.db`. Old rows are deleted in steps while writes continue."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
import trio
from attrs import frozen

from lithos.app.capabilities import make_retentions
from lithos.events.journal.messages import AppendEvents, Flush, MoveCursor, RegisterAgent
from lithos.events.model.agents import READ, SEARCH_RESULT, AuditRow
from lithos.events.reading import retention as module
from lithos.events.reading.agents import Cursors
from lithos.events.reading.retention import Upkeep
from lithos.events.rows.store import CoordinationStore
from lithos.events.settings import EventsConfig
from lithos.kernel.values.events import EventDraft
from lithos.kernel.values.principals import ENRICH_AGENT
from lithos.tasks.model.task_commands import ClaimAspect, CreateTask, PostFinding
from tests import upstream
from tests.fakes import START, Inline
from tests.kernel.actors.desks import CoordinatorDesk

pytestmark = pytest.mark.autojump
DAY = timedelta(days=1)


@frozen
class Notes:
    """Note catalogue of a desk."""

    desk: Desk

    def __contains__(self, note_id: str) -> bool:
        return note_id in self.desk.notes

    def __iter__(self) -> Iterator[Any]:
        return (MagicMock(note=MagicMock(author=name, contributors=())) for name in self.desk.writers)


class Desk(CoordinatorDesk):
    """A desk with a coordinator and its upkeep on a real database."""

    def __init__(self, path: Path, **bounds: Any) -> None:
        super().__init__(path, journal_size=bounds.get("journal_size", 100_000))
        self.notes = {"kept"}
        self.writers: set[str] = set()
        self.upkeep = Upkeep(
            coordinator=self.coordinator,
            journal=self.store,
            reading=Inline(),  # type: ignore[arg-type]
            settled=self.clock,  # type: ignore[arg-type]
            events=EventsConfig(**{"audit_rows": 1000} | bounds),
            notes=Notes(self),  # type: ignore[arg-type]
            others=make_retentions(),
        )

    async def run(self, command: Any) -> Any:
        return await self.mailbox.ask(command)

    async def access(self, count: int, operation: str = SEARCH_RESULT, doc: str = "kept") -> None:
        self.coordinator.record_access([AuditRow("a", doc, operation, self.clock()) for _ in range(count)])
        await self.mailbox.ask(Flush())

    def audited(self) -> int:
        return len(self.store.audit(agent=None, doc=None, after=None, limit=100_000))

    def count(self, table: str) -> int:
        return self.store._reader.execute(f"SELECT COUNT(*) FROM {table}").fetchall()[0][0]


async def test_accesses_are_kept_for_the_configured_number_of_days(tmp_path: Path) -> None:
    """docs/spec/cli-config.md §4: the setting is `events.audit_days`."""
    async with Desk.at(tmp_path / "c.db", audit_days=3) as desk:
        for _ in range(5):
            await desk.access(400)
            desk.clock.now += DAY
        await desk.upkeep.look()
        assert desk.audited() == 3 * 400 - 200 or desk.audited() == 1000
        desk.clock.now += 2 * DAY
        await desk.upkeep.look()
        assert desk.audited() == 400
        desk.clock.now += 30 * DAY
        await desk.upkeep.look()
        assert desk.audited() == 0


async def test_newest_accesses_are_kept_up_to_the_configured_number(tmp_path: Path) -> None:
    """docs/spec/cli-config.md §4: the setting is `events.audit_rows`."""
    async with Desk.at(tmp_path / "c.db", audit_rows=1000) as desk:
        await desk.access(2500)
        await desk.upkeep.look()
        rows = desk.store.audit(agent=None, doc=None, after=None, limit=5000)
        assert (len(rows), rows[0][0], rows[-1][0]) == (1000, 2500, 1501)


async def test_reads_that_were_deleted_from_the_log_still_count(tmp_path: Path) -> None:
    async with Desk.at(tmp_path / "c.db", audit_rows=10) as desk:
        for _ in range(3):
            await desk.access(700, READ)
            await desk.upkeep.look()
            desk.clock.now += DAY
        assert desk.audited() == 10
        assert desk.coordinator.reads_of("kept") == 2100
        assert desk.store.read_counts() == {"kept": 2100}
    again = CoordinationStore.open(tmp_path / "c.db", START)
    assert again.read_counts() == {"kept": 2100}
    again.close()


async def test_read_counts_of_deleted_notes_are_limited(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "GONE_NOTES", 5)
    async with Desk.at(tmp_path / "c.db", audit_rows=1) as desk:
        for number in range(20):
            await desk.access(2, READ, f"gone {number}")
        await desk.access(2, READ)
        await desk.upkeep.look()
        assert len(desk.coordinator.reads()) == 6
        assert desk.coordinator.reads_of("kept") == 2
        assert desk.count("read_counts") <= 6


async def test_writes_continue_between_pruning_steps(tmp_path: Path) -> None:
    """During a large pruning, a write waits for at most one short step."""
    async with Desk.at(tmp_path / "c.db", audit_rows=10) as desk:
        await desk.access(6_000)
        written = 0

        async def write() -> None:
            nonlocal written
            while True:
                await desk.mailbox.ask(AppendEvents((draft("x"),)))
                written += 1
                await trio.sleep(0.01)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            await desk.upkeep.look()
            nursery.cancel_scope.cancel()
        assert desk.audited() == 10
        assert written > 6_000 / module.STEP
        assert module.STEP <= 1000


def draft(text: str) -> EventDraft:
    return EventDraft(type="task.completed", agent="a", payload={"outcome": text}, timestamp=START)


async def test_journal_size_in_bytes_is_limited(tmp_path: Path) -> None:
    """docs/spec/events-http.md §2: a client at a pruned position gets `resync`."""
    async with Desk.at(tmp_path / "c.db") as desk:
        desk.upkeep.journal_bytes = 1_000_000
        seqs = [await desk.mailbox.ask(AppendEvents((draft("x" * 20_000),))) for _ in range(120)]
        await desk.upkeep.look()
        kept = desk.store.events_after(0)
        assert 40 <= len(kept) <= 50
        assert kept[-1].seq == seqs[-1]
        assert desk.store.pruned_through() == kept[0].seq - 1
        assert not desk.store.knows_position(seqs[0])
        assert desk.store.knows_position(kept[0].seq - 1)
        await desk.upkeep.look()
        assert len(desk.store.events_after(0)) == len(kept)


async def test_lowered_journal_limit_applies_without_new_events(tmp_path: Path) -> None:
    """docs/spec/events-http.md §2: the newest `events.journal_size` events are kept."""
    async with Desk.at(tmp_path / "c.db") as desk:
        for _ in range(10):
            await desk.mailbox.ask(AppendEvents(tuple(draft("x") for _ in range(100))))
    async with Desk.at(tmp_path / "c.db", journal_size=50) as desk:
        await desk.upkeep.look()
        assert desk.store.event_count() == 50
        assert desk.store.pruned_through() == desk.store.events_after(0)[0].seq - 1


async def test_many_new_bytes_start_the_size_check_early(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("lithos.events.journal.coordinator.GROWTH", 300_000)
    async with Desk.at(tmp_path / "c.db") as desk, trio.open_nursery() as nursery:
        desk.upkeep.journal_bytes = 100_000
        nursery.start_soon(desk.upkeep.run)
        await trio.sleep(module.FIRST + 1)
        before = trio.current_time()
        for _ in range(40):
            await desk.mailbox.ask(AppendEvents((draft("x" * 20_000),)))
        await trio.sleep(5)
        assert trio.current_time() - before < module.INTERVAL
        assert desk.store.event_count() < 20
        nursery.cancel_scope.cancel()


async def test_idle_agents_are_deleted_unless_stored_data_names_them(tmp_path: Path) -> None:
    async with Desk.at(tmp_path / "c.db") as desk:
        for name in ("idle", "creator", "claimer", "finder", "author", "reader", "fresh"):
            await desk.mailbox.ask(RegisterAgent(name, None, None, {"k": "v"}))
        task = await desk.run(CreateTask(title="T", agent="creator"))
        await desk.run(ClaimAspect(task_id=task, aspect="x", agent="claimer", ttl_minutes=480))
        await desk.run(PostFinding(task_id=task, agent="finder", summary="s"))
        await desk.mailbox.ask(MoveCursor("reader"))
        desk.writers = {"author"}
        desk.clock.now += 366 * DAY
        await desk.mailbox.ask(MoveCursor("reader", desk.coordinator.head))
        desk.coordinator.touch("fresh")
        await desk.upkeep.look()
        # The agent whose claim ended long ago is also deleted.
        kept = {"creator", "finder", "author", "reader", "fresh"}
        assert set(desk.coordinator.agents) == kept
        assert {agent.id for agent in desk.store.agents()} == set(desk.coordinator.agents)
        assert "idle" not in desk.coordinator.agents
        # A deleted agent that returns counts as a new agent.
        assert (await desk.mailbox.ask(RegisterAgent("idle", None, None, None))).created


async def test_surplus_agents_are_deleted_before_a_year_has_passed(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "AGENTS", 10)
    async with Desk.at(tmp_path / "c.db") as desk:
        for number in range(30):
            desk.clock.now += timedelta(seconds=1)
            desk.coordinator.touch(f"a{number:02}")
        await desk.mailbox.ask(Flush())
        await desk.upkeep.look()
        assert sorted(desk.coordinator.agents) == [f"a{number}" for number in range(20, 30)]
        assert desk.count("agents") == 10


async def test_stored_agents_have_a_limit_in_bytes(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "AGENT_BYTES", 300_000)
    async with Desk.at(tmp_path / "c.db") as desk:
        for number in range(20):
            desk.clock.now += timedelta(seconds=1)
            await desk.mailbox.ask(RegisterAgent(f"a{number}", None, None, {"k": "x" * 50_000}))
        await desk.upkeep.look()
        assert set(desk.coordinator.agents) == {"a15", "a16", "a17", "a18", "a19"}


async def test_agent_that_acts_during_the_deletion_is_kept(tmp_path: Path) -> None:
    async with Desk.at(tmp_path / "c.db") as desk:
        desk.coordinator.touch("back")
        await desk.mailbox.ask(Flush())
        desk.clock.now += 400 * DAY
        real = desk.upkeep._writers

        def act() -> Any:
            desk.coordinator.touch("back")
            return real()

        desk.upkeep._writers = act
        await desk.upkeep.look()
        assert "back" in desk.coordinator.agents
        await desk.mailbox.ask(Flush())
        assert [agent.id for agent in desk.store.agents()] == ["back"]


async def test_cursors_idle_for_a_year_are_deleted_and_start_again(tmp_path: Path) -> None:
    """docs/spec/events-http.md §4: a deleted cursor name counts as new and starts at the head."""
    async with Desk.at(tmp_path / "c.db") as desk:
        for name in ("idle", "moved", ENRICH_AGENT):
            await desk.mailbox.ask(MoveCursor(name))
        desk.clock.now += 200 * DAY
        head = await desk.mailbox.ask(AppendEvents((draft("x"),)))
        await desk.mailbox.ask(MoveCursor("moved", head))
        desk.clock.now += 200 * DAY
        await desk.upkeep.look()
        assert desk.store.cursor("idle") is None
        assert desk.store.cursor("moved") == head
        assert desk.store.cursor(ENRICH_AGENT) is not None
        cursors = Cursors(desk.mailbox, desk.store, Inline())
        assert await cursors.start("idle") == desk.coordinator.head


async def test_surplus_cursors_are_deleted_before_a_year_has_passed(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "CURSORS", 3)
    async with Desk.at(tmp_path / "c.db") as desk:
        for number in range(8):
            desk.clock.now += timedelta(seconds=1)
            await desk.mailbox.ask(MoveCursor(f"c{number}"))
        await desk.upkeep.look()
        kept = [number for number in range(8) if desk.store.cursor(f"c{number}") is not None]
        assert kept == [5, 6, 7]


async def test_old_ended_claims_are_deleted_but_their_tasks_are_kept(tmp_path: Path) -> None:
    async with Desk.at(tmp_path / "c.db") as desk:
        task = await desk.run(CreateTask(title="T", agent="a"))
        claim = (await desk.run(ClaimAspect(task_id=task, aspect="x", agent="a"))).claim
        desk.clock.now += 20 * DAY
        await desk.upkeep.look()
        assert desk.count("claims") == 1
        desk.clock.now += 20 * DAY
        await desk.upkeep.look()
        assert (desk.count("claims"), desk.count("claim_ends"), desk.count("tasks")) == (0, 0, 1)
        again = await desk.run(ClaimAspect(task_id=task, aspect="x", agent="b"))
        assert again.claim.fence > claim.fence


async def test_texts_in_an_older_database_stay_readable(tmp_path: Path) -> None:
    """Limits apply to new input. Data from earlier versions is neither shortened nor refused."""
    path = tmp_path / "c.db"
    CoordinationStore.open(path, START).close()
    store = CoordinationStore.open(path, START)
    with store.transaction():
        store._writer.execute(
            "INSERT INTO agents VALUES('old', ?, NULL, ?, ?, '{}', NULL)",
            (
                "n" * 7_000_000,
                START.isoformat(timespec="microseconds"),
                START.isoformat(timespec="microseconds"),
            ),
        )
    store.close()
    async with Desk.at(tmp_path / "c.db") as desk:
        await desk.upkeep.look()
        assert len(desk.coordinator.agents["old"].name or "") == 7_000_000


async def test_upstream_data_of_any_age_is_kept(tmp_path: Path) -> None:
    """behaviour 242: another Lithos wrote the accesses, ended claims and idle agents in the file."""
    upstream.make(tmp_path / "c.db", upstream.COORDINATION["0.4"], upstream.coordination_rows("0.4"))
    async with Desk.at(tmp_path / "c.db", audit_days=3, audit_rows=10) as desk:
        await desk.access(400)
        await desk.run(RegisterAgent(id="new", name=None, type=None, metadata=None))
        desk.clock.now += 800 * DAY
        for _ in range(2):  # the first pass deletes surplus rows, and the second pass deletes old rows
            await desk.upkeep.look()
        assert desk.audited() == 2
        assert desk.count("claims") == 2
        assert {agent.id for agent in desk.store.agents()} == {"ada", "idle"}
        assert desk.coordinator.agents.keys() == {"ada", "idle"}
