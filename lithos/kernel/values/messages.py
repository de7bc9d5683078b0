"""Commands: the requests to actors; the class of each defines the type of its reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

from attrs import frozen

from lithos.kernel.values.events import EventDraft

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Command(Generic[R_co]):
    """A message that is answered with an `R_co`; it has no fields of its own."""

    __slots__ = ()


class BoardCommand(Command[R_co]):
    """A command that a board of the coordinator carries out in its transaction."""

    __slots__ = ()


@frozen
class Done(Generic[R_co]):
    """The reply of a command, and the events it announces."""

    reply: R_co
    events: tuple[EventDraft, ...] = ()


#: The method for each class of command. That they match is tested by tests/kernel/actors/test_replies.py.
Handlers = Mapping[type, Callable[[Any, datetime], Done[Any]]]


def carry_out(handlers: Handlers, command: Command[R], now: datetime) -> Done[R]:
    """Call the method for the command."""
    return handlers[type(command)](command, now)
