"""An HTTP front under construction, to which capabilities add their endpoints."""

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
    """Endpoints of an HTTP front.

    `rejected` gets the reason of each refusal. `watch` adds a gauge by name. Endpoints start their tasks in
    `nursery` and must end their streams at `shutdown`.
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
    #: Whether this front reloads the tokens when the token file changes.
    keyring_runs: bool = True
    #: ASGI applications by path, served without Quart.
    apps: dict[str, AsgiApp] = field(factory=dict)  # bounded: those of capabilities
    #: ASGI applications by path for remote clients that have no token yet.
    oauth: dict[str, AsgiApp] = field(factory=dict)  # bounded: those of capabilities
    #: Functions that add routes to Quart, called once the server listens.
    routes: list[RouteModule] = field(factory=list)  # bounded: those of capabilities


@frozen
class FrontParts:
    """The console's sessions and factory, and the arguments of `Application` except tools and state."""

    application: Mapping[str, Any]
    sessions: Sessions | None
    make_console: Callable[[], Console] | None
