"""One HTTP front while it begins: capabilities add their endpoints to it."""

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
    """The endpoints of a front.

    `rejected` gets the reason of each refusal. `watch` adds a gauge by its name. Tasks of an endpoint are
    started in `nursery`, and have to end its streams at `shutdown`.
    """

    parts: Parts
    settings: FrontSettings
    nursery: trio.Nursery
    shutdown: trio.Event
    wrong_tokens: WrongTokens
    rejected: Callable[[str], None]
    watch: Callable[[str, Callable[[], float]], None]
    #: The sessions of the console, where it is served.
    sessions: Sessions | None
    #: Whether this front has the tokens follow their file.
    keyring_runs: bool = True
    #: Applications of single paths, past Quart.
    apps: dict[str, AsgiApp] = field(factory=dict)  # bounded: those of capabilities
    #: The same for remote clients, which have no token yet.
    oauth: dict[str, AsgiApp] = field(factory=dict)  # bounded: those of capabilities
    #: Functions that add routes to Quart, called once the server listens.
    routes: list[RouteModule] = field(factory=list)  # bounded: those of capabilities


@frozen
class FrontParts:
    """Arguments of `Application` except tools and state; the console's sessions, and a late console."""

    application: Mapping[str, Any]
    sessions: Sessions | None
    make_console: Callable[[], Console] | None
