"""Interfaces of the server that answers a command: a running server, or a local one in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from attrs import frozen

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.server_ports import RunServer


class ToolClient(Protocol):
    """Interface of a server for commands."""

    async def call(self, tool: str, arguments: Mapping[str, Any], /) -> Mapping[str, Any] | None:
        """Return the structured answer of a tool. Refusals are returned, not raised."""

    async def health(self) -> Mapping[str, Any]:
        """Return the state of each component."""

    async def accesses(self, query: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Return the audit trail: each read, with its agent and time."""


class StartLocalServer(Protocol):
    """Starts a server for a command, and stops it at the end of the block."""

    def __call__(self, config: Config, /) -> AbstractAsyncContextManager[ToolClient]:
        """Return the server once its notes are searchable. Raises the errors of `RunServer`."""


@frozen
class LocalServers:
    """Starter of servers in the process of a command."""

    run: RunServer
    ask: StartLocalServer
    #: Loads the declarations of all capabilities, such as the tables of databases that a command reads.
    declare: Callable[[], None]
