"""Boards, which run the commands of a capability inside the coordinator's transaction.

`JournalBoard` handles the journal's own commands: calls with a `request_id`, and imported agents and
accesses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from lithos.events.model.imported_rows import ACCESSES, AGENTS, Carried, CarryRows
from lithos.events.model.requests import BeginCall, EndCall, RecordedCall
from lithos.events.rows.imported_rows import merge_accesses, merge_agents
from lithos.events.rows.requests import RequestRows
from lithos.kernel.values.events import EventDraft
from lithos.kernel.values.messages import Done, Handlers

#: Function that merges imported rows into one table.
Carrier = Callable[[CarryRows, datetime], Done[Carried]]


class Board:
    """The command handlers of one capability. They work on the capability's rows.

    All methods except `committed` are called in the worker thread of the transaction, never concurrently.
    """

    #: Handlers by command class.
    handlers: Handlers
    #: Import functions by table, for tables whose rows can be imported.
    carriers: Mapping[str, Carrier] = MappingProxyType({})

    def begin(self, now: datetime, *, is_due: bool) -> Sequence[EventDraft]:
        """Begin a transaction. Return the events of timed changes that are due."""
        del now, is_due
        return ()

    def follow(self, draft: EventDraft, now: datetime) -> Sequence[EventDraft]:
        """Return the events that result from an event of the same transaction."""
        del draft, now
        return ()

    def next_due(self, now: datetime) -> datetime | None:
        """Return the time of the next timed change, or None."""
        del now
        return None

    def is_through(self) -> bool:
        """Return whether only commands can change `next_due`."""
        return True

    def committed(self) -> None:
        """Make the changes of a committed transaction visible to readers. Called on the event loop."""

    def forget(self) -> None:
        """Discard the changes of a failed transaction."""


class JournalBoard(Board):
    """The handlers of the journal's own commands."""

    def __init__(self, requests: RequestRows) -> None:
        self._requests = requests
        self.handlers = {BeginCall: self._begin_call, EndCall: self._end_call}
        self.carriers = {AGENTS.name: self._carry_agents, ACCESSES.name: self._carry_accesses}

    def _begin_call(self, command: BeginCall, now: datetime) -> Done[RecordedCall]:
        return Done(self._requests.begin(command.key, command.digest, now))

    def _end_call(self, command: EndCall, now: datetime) -> Done[None]:
        del now
        self._requests.end(command.key, command.answer)
        return Done(None)

    def _carry_agents(self, command: CarryRows, now: datetime) -> Done[Carried]:
        del now
        return Done(merge_agents(self._requests.connection, command.rows, dry_run=command.dry_run))

    def _carry_accesses(self, command: CarryRows, now: datetime) -> Done[Carried]:
        del now
        connection, source = self._requests.connection, command.source
        return Done(merge_accesses(connection, source, command.rows, dry_run=command.dry_run))


class Boards:
    """All boards of one coordinator. Each method calls only the boards that override it."""

    def __init__(self, boards: Iterable[Board]) -> None:
        self._all = tuple(boards)
        self._carriers = {table: carrier for board in self._all for table, carrier in board.carriers.items()}
        #: Handlers by command class.
        self.handlers: Handlers = {
            CarryRows: self._carry,
            **{command: method for board in self._all for command, method in board.handlers.items()},
        }
        self._beginning = [board.begin for board in self._having("begin")]
        self._following = [board.follow for board in self._having("follow")]
        self._due = [board.next_due for board in self._having("next_due")]
        self._through = [board.is_through for board in self._having("is_through")]
        self._committed = [board.committed for board in self._having("committed")]
        self._forgetting = [board.forget for board in self._having("forget")]

    def _having(self, name: str) -> list[Board]:
        return [board for board in self._all if getattr(type(board), name) is not getattr(Board, name)]

    def _carry(self, command: CarryRows, now: datetime) -> Done[Carried]:
        return self._carriers[command.table](command, now)

    def begin(self, now: datetime, *, is_due: bool) -> list[EventDraft]:
        """Begin a transaction. Return the events of timed changes that are due."""
        events: list[EventDraft] = []
        for begin in self._beginning:
            events += begin(now, is_due=is_due)
        return events

    def follow(self, drafts: Sequence[EventDraft], now: datetime) -> Sequence[EventDraft]:
        """Return the given events, and the events that result from them."""
        after: list[EventDraft] = []
        for follow in self._following:
            for draft in drafts:
                after += follow(draft, now)
        return (*drafts, *after) if after else drafts

    def next_due(self, now: datetime) -> datetime | None:
        """Return the time of the next timed change of any board, or None."""
        return min((due for next_due in self._due if (due := next_due(now)) is not None), default=None)

    def is_through(self) -> bool:
        """Return whether only commands can change `next_due`."""
        for is_through in self._through:  # noqa: SIM110 - each commit asks: a generator costs more
            if not is_through():
                return False
        return True

    def committed(self) -> None:
        """Make the changes of a committed transaction visible to readers."""
        for committed in self._committed:
            committed()

    def forget(self) -> None:
        """Discard the changes of a failed transaction."""
        for forget in self._forgetting:
            forget()
