"""Interfaces of notes and journal for the tool registry, which is created before both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime
from typing import Any, Protocol

from attrs import frozen

from lithos.server.tools.arguments import Identify, Locate
from lithos.server.tools.declaring import Answer

#: Function that serves a call. If an earlier call with the same id may have taken effect, it gets the time of
#: that call.
Serve = Callable[[datetime | None], Awaitable[Answer]]


class RecordPartialRead(Protocol):
    """Records which part of a note an agent has read.

    The part begins at `start` and ends with the note, unless the text `is_cut`.
    """

    def __call__(
        self, note_id: str, agent: str | None, text: str, start: int | None, *, is_cut: bool
    ) -> None: ...


@frozen
class NotePorts:
    """Functions that find the notes named in a call, and record partial reads.

    `as_spelled` returns a path prefix in the spelling of the existing folders.
    """

    locate: Locate
    identify: Identify
    as_spelled: Callable[[str], str]
    see_part: RecordPartialRead


@frozen
class TaskIds:
    """Finds the tasks named in a call. A text that names no task stays. Raises `AmbiguousIdPrefix`."""

    identify: Identify


class RequestDeduplication(Protocol):
    """Runs a call once. A retry gets the answer to the first call.

    Raises `InvalidInput` if the id belongs to a different call. Also raises the refusals of `serve`.
    """

    async def __call__(
        self,
        serve: Serve,
        *,
        caller: str,
        agent: str,
        request_id: str,
        tool: str,
        arguments: Mapping[str, Any],
    ) -> Answer: ...


@frozen
class KnownCalls:
    """Earlier calls, by their `request_id`."""

    once: RequestDeduplication


@frozen
class AgentProjects:
    """The projects of agents, as hooks named them.

    `known` contains the agents of remembered sessions. `tell` gets the client session, the agent and the
    project of a call by a hook. `find` returns the project of an agent whose call names none, or None.
    """

    known: Collection[str]
    tell: Callable[[str, str, str], None]
    find: Callable[[str], str | None]
