"""Interfaces of notes and of the journal for the registry, which is created before them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

from attrs import frozen

from lithos.server.tools.arguments import Identify, Locate
from lithos.server.tools.declaring import Answer

#: Serves a call. For a retry whose first call may have taken effect, it gets the time of the first call.
Serve = Callable[[datetime | None], Awaitable[Answer]]


class RecordPartialRead(Protocol):
    """Records which text of a note an agent got: from `start` up to the end, unless the text `is_cut`."""

    def __call__(
        self, note_id: str, agent: str | None, text: str, start: int | None, *, is_cut: bool
    ) -> None: ...


@frozen
class NotePorts:
    """How calls name notes, and how partial reads of them are remembered.

    `as_spelled` returns a path prefix in the spelling of the existing folders.
    """

    locate: Locate
    identify: Identify
    as_spelled: Callable[[str], str]
    see_part: RecordPartialRead


class RequestDeduplication(Protocol):
    """Returns the answer to a call. A retry gets the answer to the first call.

    Raises `InvalidInput` if another call used the same id, and the refusals of `serve`.
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
    """Known calls by their `request_id`."""

    once: RequestDeduplication
