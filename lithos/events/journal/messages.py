"""Messages of the coordinator: its commands with their replies, and the values of one batch."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from enum import Enum
from typing import Any

from attrs import frozen

from lithos.events.model.agents import Agent
from lithos.events.model.retention import UpkeepStep
from lithos.kernel.actors.mailboxes import Mailbox
from lithos.kernel.values.events import EventDraft
from lithos.kernel.values.messages import BoardCommand, Command


class Journalled(Enum):
    """The outcome for events without a seq: they are retried later."""

    LATER = "later"


@frozen
class AppendEvents(Command[int | Journalled]):
    """Journal events in this order; the reply is the last one's seq, or why it is missing."""

    drafts: tuple[EventDraft, ...]


@frozen
class RegisterAgent(Command[bool]):
    """Insert or merge an agent and announce it; the reply is whether it is new."""

    id: str
    name: str | None
    type: str | None
    metadata: Mapping[str, Any] | None


@frozen
class MoveCursor(Command[int]):
    """Remember durably how far a subscriber has got; the reply is where its cursor then is.

    A cursor only moves forward; without `seq` a new one begins at the head and an old one stays.
    """

    subscriber: str
    seq: int | None = None


@frozen
class Flush(Command[None]):
    """Commit pending rows, now."""


CoordinatorMessage = AppendEvents | RegisterAgent | BoardCommand[object] | MoveCursor | UpkeepStep | Flush
CoordinatorMailbox = Mailbox[CoordinatorMessage]


def make_id() -> str:
    """A fresh lowercase UUID."""
    return str(uuid.uuid4())


@frozen
class PreparedMessage:
    """One message of a batch, as far as it can be worked out before the transaction."""

    message: CoordinatorMessage
    drafts: tuple[EventDraft, ...] = ()
    agent: Agent | None = None
    reply: object = None

    @property
    def must_be_stored(self) -> bool:
        """Whether its sender must hear when it could not be written."""
        return not isinstance(self.message, AppendEvents | Flush)

    @property
    def needs_transaction(self) -> bool:
        """Whether anything of it is written."""
        return bool(self.drafts or self.must_be_stored)
