"""HTTP front to which capabilities add their endpoints before it starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import trio
from attrs import define, field, frozen

from lithos.kernel.parts import Parts
from lithos.server.console.sessions import Sessions
from lithos.server.http.admissions import WrongTokens
from lithos.server.http.ports import AsgiApp, FrontSettings

if TYPE_CHECKING:
    from lithos.server.console.console import Console
    from lithos.server.http.quart_app import RouteModule


@define(kw_only=True, eq=False)
class Front:
    """Builder for the endpoints of an HTTP front.

    `rejected` is called with the reason of each refusal. `watch` adds a named gauge. Endpoints start their
    tasks in `nursery` and must end their streams when `shutdown` is set.
    """

    parts: Parts
    settings: FrontSettings
    nursery: trio.Nursery
    shutdown: trio.Event
    wrong_tokens: WrongTokens
    rejected: Callable[[str], None]
    watch: Callable[[str, Callable[[], float]], None]
    #: Sessions of the console, or None if the console is not served.
    sessions: Sessions | None
    #: Whether this front reloads the tokens after a change of the token file.
    keyring_runs: bool = True
    #: ASGI applications by path. They are served without Quart.
    apps: dict[str, AsgiApp] = field(factory=dict)  # bounded: those of capabilities
    #: ASGI applications by path for remote clients that have no token yet.
    oauth: dict[str, AsgiApp] = field(factory=dict)  # bounded: those of capabilities
    #: Functions that add routes to Quart. They are called after the server has begun to listen.
    routes: list[RouteModule] = field(factory=list)  # bounded: those of capabilities


@frozen
class FrontParts:
    """Console sessions, console factory, and most arguments of `Application`.

    The arguments for the tools and the health report are missing.
    """

    application: Mapping[str, Any]
    sessions: Sessions | None
    make_console: Callable[[], Console] | None
