"""Interfaces of notes and of the journal for the registry, which is created before them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

from attrs import frozen

from lithos.server.tools.arguments import Identify, Locate
from lithos.server.tools.declaring import Answer

#: Serves a call; it is given since when the call is known, where it may have taken effect already.
Serve = Callable[[datetime | None], Awaitable[Answer]]


class RecordPartialRead(Protocol):
    """Remembers that an agent got a text of a note: from `start` on, to the end unless it `is_cut`."""

    def __call__(
        self, note_id: str, agent: str | None, text: str, start: int | None, *, is_cut: bool
    ) -> None: ...


@frozen
class NotePorts:
    """How calls name notes, and what remembers their texts.

    `as_spelled` gives a path prefix as the folders of the notes are spelled.
    """

    locate: Locate
    identify: Identify
    as_spelled: Callable[[str], str]
    see_part: RecordPartialRead


class RequestDeduplication(Protocol):
    """Gives the answer of a call: that of the first one where it is a retry.

    Raises `InvalidInput` where the id was given to another call, and the refusals of `serve`.
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
    """The calls that are known by their `request_id`."""

    once: RequestDeduplication
