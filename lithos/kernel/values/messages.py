"""Commands, which are requests to actors. The class of a command defines the type of its reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

from attrs import frozen

from lithos.kernel.values.events import EventDraft

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Command(Generic[R_co]):
    """A message with a reply of type `R_co`. This base class has no fields."""

    __slots__ = ()


class BoardCommand(Command[R_co]):
    """A command that a board of the coordinator runs in the coordinator's transaction."""

    __slots__ = ()


@frozen
class Done(Generic[R_co]):
    """The reply to a command, and the events that will be published."""

    reply: R_co
    events: tuple[EventDraft, ...] = ()


#: Methods by the command class that they handle. tests/kernel/actors/test_replies.py checks that the types
#: match.
Handlers = Mapping[type, Callable[[Any, datetime], Done[Any]]]


def carry_out(handlers: Handlers, command: Command[R], now: datetime) -> Done[R]:
    """Call the method that handles the command."""
    return handlers[type(command)](command, now)
