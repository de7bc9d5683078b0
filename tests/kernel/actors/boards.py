"""A task board with an in-memory database. Tests use the board directly, without actors."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import apsw

from lithos.kernel.values.errors import LithosError
from lithos.kernel.values.events import EventDraft
from lithos.kernel.values.messages import carry_out
from lithos.tasks.board.task_board import TaskBoard
from lithos.tasks.model.task import ClaimTimes
from lithos.tasks.model.task_commands import CreateTask, TaskCommand
from lithos.tasks.rows.task_tables import TASK_TABLES
from lithos.tasks.rows.tasks import TaskRows

AGENTS = "CREATE TABLE agents(id TEXT PRIMARY KEY, last_seen_at TEXT NOT NULL);"
START = datetime(2026, 3, 1, 9, tzinfo=UTC)


class Board:
    """Board that runs commands in the same way as the coordinator: each in a savepoint.

    The test advances the clock.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.connection = apsw.Connection(":memory:")
        self.connection.execute(TASK_TABLES.create + TASK_TABLES.indexes + AGENTS)
        self.rows = TaskRows(self.connection)
        self.now = START
        self.events: list[EventDraft] = []
        numbers = itertools.count(1)
        self.board = TaskBoard(self.rows, ClaimTimes(), lambda: f"id-{next(numbers):04}", strict=strict)

    def run(self, command: TaskCommand) -> Any:
        """Run a command and return its reply.

        A refused command raises its error and changes nothing.
        """
        self.sweep()
        with self.connection:
            done = carry_out(self.board.handlers, command, self.now)
        self.events += done.events
        return done.reply

    def sweep(self) -> None:
        """Process everything that is due at the current time.

        One call handles as much as one transaction reports.
        """
        readiness = self.board.readiness
        due = readiness.next_due(self.now)
        with self.connection:
            self.events += readiness.begin(self.now, is_due=due is not None and due <= self.now)

    def refusal(self, command: TaskCommand) -> LithosError:
        """Return the error of a command, and check that the command announces and changes nothing."""
        self.sweep()
        before = self.dump(), len(self.events)
        try:
            self.run(command)
        except LithosError as refusal:
            assert (self.dump(), len(self.events)) == before
            return refusal
        raise AssertionError(f"{command} was not refused")

    def create(self, title: str = "T", **fields: Any) -> str:
        """Create a task and return its id."""
        task_id: str = self.run(CreateTask(title=title, agent="maker", **fields))
        return task_id

    def pass_time(self, **delta: float) -> None:
        """Advance the clock."""
        self.now += timedelta(**delta)

    def dump(self) -> list[Any]:
        """Return all stored rows."""
        tables = ("tasks", "claims", "findings", "task_edges")
        return [self.connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in tables]
