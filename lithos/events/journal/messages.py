"""Messages of the coordinator: commands and their replies, and the prepared messages of a batch."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any

from attrs import frozen

from lithos.events.model.agents import Agent
from lithos.events.model.retention import UpkeepStep
from lithos.kernel.actors.mailboxes import Mailbox
from lithos.kernel.values.events import EventDraft
from lithos.kernel.values.messages import BoardCommand, Command


class Journalled(Enum):
    """Reply for events that have no seq yet, because they are journalled later."""

    LATER = "later"


@frozen
class AppendEvents(Command[int | Journalled]):
    """Append events to the journal in this order.

    The reply is the seq of the last event, or `Journalled.LATER`.
    """

    drafts: tuple[EventDraft, ...]


@frozen
class RegisteredAgent:
    """The result of a registration: whether the agent is new, and the id of an agent with the same name."""

    created: bool
    namesake: str | None = None


@frozen
class RegisterAgent(Command[RegisteredAgent]):
    """Insert or merge an agent and announce it with an event. The reply is a `RegisteredAgent`."""

    id: str
    name: str | None
    type: str | None
    metadata: Mapping[str, Any] | None


@frozen
class ArchivedAgent:
    """The result of archiving an agent."""

    archived_at: datetime
    already_archived: bool


@frozen
class ArchiveAgent(Command[ArchivedAgent]):
    """Retire an agent on behalf of the agent `by`. The reply is an `ArchivedAgent`."""

    id: str
    by: str


@frozen
class MoveCursor(Command[int]):
    """Durably store the position of a subscriber. The reply is the resulting position.

    A cursor only moves forward. Without `seq`, a new cursor starts at the head, and an existing cursor does
    not move.
    """

    subscriber: str
    seq: int | None = None


@frozen
class Flush(Command[None]):
    """Commit pending rows at once."""


CoordinatorMessage = (
    AppendEvents | RegisterAgent | ArchiveAgent | BoardCommand[object] | MoveCursor | UpkeepStep | Flush
)
CoordinatorMailbox = Mailbox[CoordinatorMessage]


def make_id() -> str:
    """Return a new lowercase UUID."""
    return str(uuid.uuid4())


@frozen
class PreparedMessage:
    """One message of a batch, prepared as far as possible before the transaction."""

    message: CoordinatorMessage
    drafts: tuple[EventDraft, ...] = ()
    agent: Agent | None = None
    reply: object = None

    @property
    def must_be_stored(self) -> bool:
        """True if the sender must get an error when the message cannot be stored."""
        return not isinstance(self.message, AppendEvents | Flush)

    @property
    def needs_transaction(self) -> bool:
        """True if the message requires a write."""
        return bool(self.drafts or self.must_be_stored)
