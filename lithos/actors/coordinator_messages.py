"""What the coordinator is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from attrs import frozen

from lithos.actors.kit import Mailbox
from lithos.core.events import EventDraft
from lithos.core.task_commands import TaskCommand


class Journalled(Enum):
    """What became of events without a seq: `LATER` is retried, `OFF` means events are disabled."""

    LATER = "later"
    OFF = "off"


@frozen
class AppendEvents:
    """Journal events in this order; the reply is the last one's seq, or why there is none."""

    drafts: tuple[EventDraft, ...]


@frozen
class RegisterAgent:
    """Insert or merge an agent and announce it; the reply is whether it is new."""

    id: str
    name: str | None
    type: str | None
    metadata: Mapping[str, Any] | None


@frozen
class RunCommand:
    """Carry out a task command; the reply is what the command promises."""

    command: TaskCommand


@frozen
class MoveCursor:
    """Remember durably how far a subscriber has got; the reply is where its cursor then is.

    A cursor only moves forward; without `seq` a new one begins at the head and an old one stays.
    """

    subscriber: str
    seq: int | None = None


@frozen
class Flush:
    """Commit what rides along, now."""


CoordinatorMessage = AppendEvents | RegisterAgent | RunCommand | MoveCursor | Flush
#: A seq, a `Journalled`, whether an agent is new, a cursor, or what a task command promises.
CoordinatorReply = Any
CoordinatorMailbox = Mailbox[CoordinatorMessage, CoordinatorReply]
