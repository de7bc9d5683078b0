"""Interfaces of the server that answers a command.

The server already runs, or is a local server in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from attrs import frozen

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.server_ports import RunServer
from lithos.server.settings import ServerConfig


class ToolClient(Protocol):
    """Interface through which a command uses a server."""

    async def call(self, tool: str, arguments: Mapping[str, Any], /) -> Mapping[str, Any] | None:
        """Call a tool and return its structured answer.

        If the tool refuses, the error envelope is returned and nothing is raised.
        """

    async def health(self) -> Mapping[str, Any]:
        """Return the state of each component."""

    async def accesses(self, query: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Return entries of the audit trail. Each entry is a read, with its agent and time."""


class StartLocalServer(Protocol):
    """Context manager factory that starts a server for a command and stops it at the end of the block."""

    def __call__(self, config: Config, /) -> AbstractAsyncContextManager[ToolClient]:
        """Return a server for the block.

        The block begins when its notes are searchable. Raises the errors of `RunServer`.
        """


@frozen
class LocalServers:
    """Functions that start a server in the process of a command, or know what it would offer."""

    run: RunServer
    ask: StartLocalServer
    #: Loads the declarations of all capabilities, such as the database tables that a command reads.
    declare: Callable[[], None]
    #: Returns the names of the tools that only read, of those that a server with these settings lists.
    read_tools: Callable[[ServerConfig], Sequence[str]]
