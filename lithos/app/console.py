"""Composition of the web console: its pages, over the services of a running server."""

from __future__ import annotations

from typing import Final

from quart_trio import QuartTrio

from lithos.app.server import Server
from lithos.front.console.console import Console
from lithos.front.console.pages import (
    agents,
    components,
    graph,
    login,
    notes,
    overview,
    receipts,
    search,
    system,
    task,
    tasks,
    undo,
)
from lithos.front.console.parts import ConsoleParts
from lithos.front.console.sessions import Sessions
from lithos.front.server.ports import FrontSettings
from lithos.services.tasks.agents import Agents

PAGES: Final = tuple(
    module.add_routes
    for module in (
        login,
        overview,
        search,
        notes,
        graph,
        tasks,
        task,
        agents,
        undo,
        receipts,
        system,
        components,
    )
)


def add_console(server: Server, settings: FrontSettings, sessions: Sessions, app: QuartTrio) -> None:
    """Serve the console of a server."""
    parts = ConsoleParts(
        tools=server.tools,
        catalogue=server.catalogue,
        knowledge=server.knowledge,
        search=server.search,
        learning=server.learning,
        state=server.state,
        gauges=server.gauges,
        access_log=server.access_log,
        streams=server.streams,
        agents=Agents(server.coordinator),
        tasks=server.coordination,
        board=server.board,
        dossiers=server.dossiers,
        timelines=server.timelines,
        clock=server.clock,
        version=settings.version,
        agent=server.console_agent,
        auth_token=settings.auth_token,
    )
    Console(parts, sessions).add_routes(app, PAGES)
