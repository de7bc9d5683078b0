"""`/console/components`: every component of the console once, for those who build pages (not linked)."""

from __future__ import annotations

from quart import Blueprint, Response

from lithos.front.console.console import Console


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the page."""

    @app.get("/components")
    async def components() -> Response:
        return await console.show("components.html")
