"""Whom a command asks: the running server over HTTP, or one in this process; how lists are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from lithos.cli.session import CommandFailed


class Asker(Protocol):
    """The backend of a query: the running server over HTTP, or one in this process."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The answer of a tool."""
        ...

    async def health(self) -> Mapping[str, Any]:
        """The body of `/health`."""
        ...

    async def accesses(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        """The body of `/audit`, asked with its parameters."""
        ...


async def ask_tool(asker: Asker, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """A tool's answer; an envelope ends the command with its message."""
    answer = await asker.call(tool, arguments) or {}
    if answer.get("status") == "error":
        raise CommandFailed(str(answer["message"]))
    return answer


async def ask_rows(asker: Asker, tool: str, arguments: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """All rows of a list, asked again from `next_offset` on where an answer was cut."""
    answer = await ask_tool(asker, tool, arguments)
    rows = list(answer[key])
    while answer.get("next_offset"):
        answer = await ask_tool(asker, tool, {**arguments, "offset": answer["next_offset"]})
        rows += answer[key]
    return rows
