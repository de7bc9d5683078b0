"""Argument `request_id` of tools that change data (docs/spec/tools.md §1.6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import attrs
from attrs import frozen

from lithos.kernel.values.errors import OutcomeUnknown
from lithos.kernel.values.principals import UNKNOWN_AGENT, Principal
from lithos.server.tools.ports import KnownCalls

if TYPE_CHECKING:
    from lithos.kernel.parts import Parts
    from lithos.server.tools.declaring import Answer, Tool, ToolCall


@runtime_checkable
class Recovering(Protocol):
    """Call that can find out itself whether it has taken effect since `begun`."""

    async def answer_again(self, using: Parts, begun: datetime) -> Answer: ...


@frozen
class _Again:
    """Retry of a call. The process that ran the first call ended before the answer."""

    _tool: Tool
    _given: ToolCall
    _begun: datetime

    async def answer(self, using: Parts) -> Answer:
        """Return the answer if a second call creates nothing twice. Otherwise raise `OutcomeUnknown`."""
        if isinstance(self._given, Recovering):
            return await self._given.answer_again(using, self._begun)
        if self._tool.creates or "I" in self._tool.hints:
            return await self._given.answer(using)
        raise unknown_outcome()


def unknown_outcome() -> OutcomeUnknown:
    """Return the error for a retry that could take effect a second time."""
    return OutcomeUnknown(
        "The first call with this request_id was not answered, and whether it took effect is "
        "unknown. Nothing was changed now. Check whether the first change exists, then call with "
        "a new request_id."
    )


async def serve_once(
    using: Parts,
    tool: Tool,
    given: ToolCall,
    caller: tuple[Principal, object],
    request_id: str,
    serve: Callable[[ToolCall], Awaitable[Answer]],
) -> Answer:
    """Serve a call unless the same call was already served.

    `caller` contains the token's principal and the agent named in the call.
    """
    principal, agent = caller
    arguments: Mapping[str, Any] = attrs.asdict(given, recurse=False)  # type: ignore[arg-type]
    named = agent if isinstance(agent, str) and agent.strip() else UNKNOWN_AGENT

    async def answer(begun: datetime | None) -> Answer:
        return await serve(given if begun is None else _Again(tool, given, begun))

    return await using.get(KnownCalls).once(
        answer,
        caller=principal.name,
        agent=named.strip(),
        request_id=request_id,
        tool=tool.name,
        arguments=arguments,
    )
