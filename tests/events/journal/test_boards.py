"""Boards, which are handlers of other packages in the coordinator's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import apsw
import pytest
from attrs import frozen

from lithos.app.capabilities import CAPABILITIES
from lithos.events.journal.boards import Board, Boards
from lithos.events.journal.broadcaster import Broadcaster
from lithos.events.journal.coordinator import Coordinator
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.threads import Inline
from lithos.kernel.values.errors import StorageFailed
from lithos.kernel.values.events import EventDraft
from lithos.kernel.values.messages import BoardCommand, Done
from tests.fakes import START, Clock, served
from tests.kernel.actors.desks import Switch

pytestmark = pytest.mark.autojump


@frozen(kw_only=True)
class Ring(BoardCommand[str]):
    """A command that rings the bell."""


class Bell(Board):
    """A board that rings on command and by the clock. It reports each ring with a follow-up event."""

    def __init__(self) -> None:
        self.handlers = {Ring: self._ring}
        self.seen: list[str] = []
        self.due: datetime | None = None

    def _ring(self, command: Ring, now: datetime) -> Done[str]:
        return Done("rung", (draft("bell.rung", now),))

    def begin(self, now: datetime, *, is_due: bool) -> Sequence[EventDraft]:
        self.seen.append("begun")
        if is_due:
            self.due = None
        return [draft("bell.struck", now)] if is_due else []

    def follow(self, one: EventDraft, now: datetime) -> Sequence[EventDraft]:
        return [draft("bell.echoed", now)] if one.type == "bell.rung" else []

    def next_due(self, now: datetime) -> datetime | None:
        return self.due

    def committed(self) -> None:
        self.seen.append("committed")

    def forget(self) -> None:
        self.seen.append("forgotten")


def draft(kind: str, now: datetime) -> EventDraft:
    return EventDraft(type=kind, agent="a", payload={}, timestamp=now)


@pytest.fixture
def store(tmp_path: Path) -> CoordinationStore:
    return CoordinationStore.open(tmp_path / "coordination.db", START)


async def test_board_command_is_journalled_with_its_follow_up_events(store: CoordinationStore) -> None:
    bell = Bell()
    desk = Coordinator(store, Boards([bell]), Inline(), Broadcaster(10, 10), Clock(), journal_size=100)
    async with served(desk.mailbox, desk.start):
        assert await desk.mailbox.ask(Ring()) == "rung"
    assert [event.draft.type for event in store.events_after(0)] == ["bell.rung", "bell.echoed"]
    assert bell.seen[:2] == ["begun", "committed"]


async def test_board_discards_its_state_when_the_commit_fails(store: CoordinationStore) -> None:
    bell, switch = Bell(), Switch(store)
    desk = Coordinator(store, Boards([bell]), Inline(), Broadcaster(10, 10), Clock(), journal_size=100)
    switch.instead_of_commit = apsw.FullError("full")
    async with served(desk.mailbox, desk.start):
        with pytest.raises(StorageFailed):
            await desk.mailbox.ask(Ring())
        switch.instead_of_commit = None
    assert bell.seen[:2] == ["begun", "forgotten"]
    assert store.events_after(0) == []


def test_due_time_of_all_boards_is_the_earliest_due_time() -> None:
    early, late, never = Bell(), Bell(), Bell()
    early.due, late.due = START, START + timedelta(hours=1)
    assert Boards([never]).next_due(START) is None
    assert Boards([late, never, early]).next_due(START) == START


@pytest.mark.needs("proposals")
def test_capabilities_create_the_expected_boards() -> None:
    assert {each.name: len(each.boards) for each in CAPABILITIES if each.boards} == {
        "tasks": 1,
        "events": 1,
        "proposals": 1,
    }
    assert [each.what for capability in CAPABILITIES for each in capability.retention] == [
        "claims",
        "proposals",
    ]
