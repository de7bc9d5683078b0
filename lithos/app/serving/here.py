"""Local servers, for commands that do not find a running server.

The server parts are imported only when a server is started, because importing them is slow.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import attrs

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.values.times import parse_time
from lithos.server.command.ask_ports import LocalServers
from lithos.server.settings import ServerConfig

if TYPE_CHECKING:
    from lithos.app.server import Server
    from lithos.kernel.parts import Parts

READY_WAIT: Final = 600.0


@attrs.frozen
class LocalServer:
    """A server inside this process. It has the same methods as an `OwnerClient`."""

    server: Server

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        answer: Mapping[str, Any] | None = await self.server.tools.call(tool, arguments)
        return answer

    async def health(self) -> Mapping[str, Any]:
        from lithos.server.service_state import ServerState

        _, body = await self.server.get(ServerState).report()
        answer: Mapping[str, Any] = body
        return answer

    async def accesses(self, query: Mapping[str, Any]) -> Mapping[str, Any]:
        from lithos.events.reading.agents import AccessLog, with_titles
        from lithos.notes.catalogue.catalogue import Catalogue

        entries = await self.server.get(AccessLog).entries(
            agent=query.get("agent_id"),
            doc=query.get("doc_id"),
            after=parse_time(query["after"]) if "after" in query else None,
            limit=query["limit"],
        )
        return {"entries": with_titles(entries, self.server.get(Catalogue))}


def run_here(config: Config) -> AbstractAsyncContextManager[Parts]:
    """Run a server for the duration of the block."""
    from lithos.app.server import running_server

    return running_server(config)


@asynccontextmanager
async def ask_here(config: Config) -> AsyncIterator[LocalServer]:
    """Run a server for the duration of the block.

    The server answers calls as soon as its notes are searchable.
    """
    import trio

    from lithos.app.server import running_server

    # The command ends too soon for a file watcher to be useful.
    unwatched = config.replace(attrs.evolve(config.of(ServerConfig), watch_files=False))
    async with running_server(unwatched) as server:
        with trio.move_on_after(READY_WAIT):
            await server.searchable()
        yield LocalServer(server)


def declare_here() -> None:
    """Load the capabilities with all their declarations."""
    import lithos.app.capabilities  # noqa: F401


def read_tools_here(server: ServerConfig) -> Sequence[str]:
    """Return the names of the tools that only read, of those that a server with these settings lists."""
    from lithos.app.capabilities import all_tools
    from lithos.server.tools.registry import is_listed

    listed = (tool.spec() for tool in all_tools() if is_listed(tool, server))
    return [spec.name for spec in listed if spec.read_only]


LOCAL: Final = LocalServers(run_here, ask_here, declare_here, read_tools_here)
