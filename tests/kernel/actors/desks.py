"""A coordinator with a real database. Tests can make its transactions fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self

import apsw

from lithos.events.journal.boards import Boards, JournalBoard
from lithos.events.journal.broadcaster import Broadcaster
from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import make_id
from lithos.events.rows.requests import RequestRows
from lithos.events.rows.store import CoordinationStore
from lithos.tasks.board.task_board import TaskBoard
from lithos.tasks.model.task import ClaimTimes
from lithos.tasks.rows.tasks import TaskRows
from tests.fakes import Clock, Gate, served


class Switch:
    """Switch that makes transactions of a store fail: before they begin, at the commit, or right after."""

    def __init__(self, store: Any) -> None:
        self.failure: BaseException | None = None
        self.instead_of_commit: BaseException | None = None
        self.after_commit: BaseException | None = None
        self.commits = 0
        self._real = store.transaction
        store.transaction = self._transaction

    @contextmanager
    def _transaction(self) -> Any:
        if self.failure is not None:
            raise self.failure
        with self._real():
            yield
            if self.instead_of_commit is not None:
                raise self.instead_of_commit
        self.commits += 1
        if self.after_commit is not None:
            raise self.after_commit


def all_boards(store: CoordinationStore) -> Boards:
    """Return the boards for the journal and the tasks."""
    return Boards(
        (
            JournalBoard(store.written(RequestRows)),
            TaskBoard(store.written(TaskRows), ClaimTimes(), make_id),
        )
    )


class CoordinatorDesk:
    """The coordinator of one database. After the store is closed, `open` simulates the next process."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.path = path
        self.clock, self.gate = Clock(), Gate()
        self.settings = {"journal_size": 100, **settings}
        self.open()

    def open(self) -> None:
        self.store = CoordinationStore.open(self.path, self.clock())
        self.switch = Switch(self.store)
        self.broadcaster = Broadcaster(1000, 1000)
        self.coordinator = Coordinator(
            self.store, all_boards(self.store), self.gate, self.broadcaster, self.clock, **self.settings
        )
        self.mailbox = self.coordinator.mailbox

    @property
    def failing(self) -> bool:
        return self.switch.failure is not None

    @failing.setter
    def failing(self, is_full: bool) -> None:
        self.switch.failure = apsw.FullError("database or disk is full") if is_full else None

    def served(self) -> AbstractAsyncContextManager[Any]:
        return served(self.mailbox, self.coordinator.start)

    @classmethod
    @asynccontextmanager
    async def at(cls, path: Path, **settings: Any) -> AsyncIterator[Self]:
        """Run a coordinator. On exit, the coordinator drains and the database is closed."""
        desk = cls(path, **settings)
        try:
            async with desk.served():
                yield desk
        finally:
            desk.store.close()
