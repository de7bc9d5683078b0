"""Whom a command asks: the running server, or one in its own process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from attrs import frozen

from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.server_ports import RunServer


class ToolClient(Protocol):
    """A server as a command asks it."""

    async def call(self, tool: str, arguments: Mapping[str, Any], /) -> Mapping[str, Any] | None:
        """The structured answer of a tool, also a refusal."""

    async def health(self) -> Mapping[str, Any]:
        """The state of each component."""

    async def accesses(self, query: Mapping[str, Any], /) -> Mapping[str, Any]:
        """The audit trail: each read, with its agent and time."""


class StartLocalServer(Protocol):
    """Starts a server to be asked, and stops it at the end of the block."""

    def __call__(self, config: Config, /) -> AbstractAsyncContextManager[ToolClient]:
        """The server once its notes are searchable. Raises as `RunServer`."""


@frozen
class LocalServers:
    """Servers in the process of a command."""

    run: RunServer
    ask: StartLocalServer
    #: Loads what the capabilities declare, as the tables of databases that a command reads.
    declare: Callable[[], None]
