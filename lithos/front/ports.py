"""What the front needs from the rest: tools, a health report, settings; and the shapes of ASGI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, Protocol

from attrs import field, frozen

from lithos.tools.contract import ToolSpec

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]


class ToolBox(Protocol):
    """The tools of one server; every transport shares one."""

    def listed(self) -> Sequence[ToolSpec]:
        """Return the tools `tools/list` shows, in their fixed order."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Run one tool and return its JSON object, or `None` where the tool may answer null.

        Domain errors are envelopes already. Raises `ArgumentFault` for unknown, missing or wrongly
        typed arguments and `UnknownTool` for a name that no profile has.
        """
        ...


class HealthReport(Protocol):
    """The state of the components."""

    async def report(self) -> tuple[int, Mapping[str, Any]]:
        """Return the HTTP status and the JSON body of `/health`."""
        ...


@frozen
class FrontSettings:
    """How the HTTP front listens and whom it admits.

    `port` 0 takes any free port. `max_body_bytes` bounds each request body; `version` is the package
    version told to clients. `auth_token` is left out of every representation.
    """

    host: str
    port: int
    version: str
    max_body_bytes: int
    auth_token: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()


def ignore_rejection(reason: str) -> None:
    """Count nothing: the default for `serve_http(rejected=...)`."""
