"""Composition of the web console: its pages, over the services of a running server."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from quart import Blueprint
from quart_trio import QuartTrio

from lithos.app import Server
from lithos.front.console.console import Console
from lithos.front.console.pages import (
    agents,
    files,
    graph,
    login,
    note,
    notes,
    overview,
    receipts,
    search,
    switcher,
    system,
    tasks,
    undo,
)
from lithos.front.console.sessions import Sessions
from lithos.front.server.admissions import WrongTokens
from lithos.front.server.ports import FrontSettings

PAGES: Final[tuple[Callable[[Console, Blueprint], None], ...]] = tuple(
    module.add_routes
    for module in (
        login,
        overview,
        search,
        switcher,
        notes,
        note,
        files,
        graph,
        tasks,
        agents,
        undo,
        receipts,
        system,
    )
)


def add_console(
    server: Server, settings: FrontSettings, sessions: Sessions, wrong_tokens: WrongTokens, app: QuartTrio
) -> None:
    """Serve the console of a server, with the page of consent where clients elsewhere are let in."""
    pages = PAGES
    if settings.public_url is not None and server.authorization is not None:
        from lithos.front.console.pages import consent  # noqa: PLC0415 - most do without

        pages = (*PAGES, partial(consent.add_routes, server=server.authorization))
    Console(server, server.tools, settings, sessions, wrong_tokens).add_routes(app, pages)
