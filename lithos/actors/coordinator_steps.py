"""A batch of the coordinator between its messages and its replies."""

from __future__ import annotations

import uuid

from attrs import field, frozen

from lithos.actors.coordinator_messages import CoordinatorReply, MoveCursor
from lithos.core.agents import Agent
from lithos.core.events import Event, EventDraft
from lithos.core.task_commands import TaskCommand


def make_id() -> str:
    """A fresh lowercase UUID."""
    return str(uuid.uuid4())


@frozen
class Step:
    """One message of a batch, as far as it can be worked out before the transaction."""

    drafts: tuple[EventDraft, ...] = ()
    agent: Agent | None = None
    command: TaskCommand | None = None
    cursor: MoveCursor | None = None
    reply: CoordinatorReply = None

    @property
    def must_be_stored(self) -> bool:
        """Whether its sender must hear when it could not be written."""
        return bool(self.agent or self.command or self.cursor)

    @property
    def needs_transaction(self) -> bool:
        """Whether anything of it is written."""
        return bool(self.drafts or self.must_be_stored)


@frozen
class Committed:
    """What a transaction made of its steps: replies in order, and the events in theirs."""

    replies: list[CoordinatorReply | Exception]
    events: list[Event]
    #: What would be events, where they are switched off.
    unjournalled: list[EventDraft] = field(factory=list)
