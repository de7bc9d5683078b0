"""Tools about the server itself."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from lithos.services.state import ServerState
from lithos.tools.registry import Answer, Tool


@frozen
class NoArguments:
    """For tools without parameters."""


class SystemTools:
    """Handlers; each takes its arguments class."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def tools(self) -> Sequence[Tool]:
        """The family in listing order."""
        return (
            Tool(
                "lithos_stats",
                "standard",
                "RI",
                "Numbers of notes, chunks, links, agents, tasks; index drift.",
                NoArguments,
                self.stats,
            ),
        )

    async def stats(self, _: NoArguments) -> Answer:
        """`lithos_stats`."""
        return await self._state.stats()
