"""`/console/`: is all well, and what is happening."""

from __future__ import annotations

from quart import Blueprint, Response

from lithos.front.console.console import Console


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the page."""

    @app.get("/")
    async def overview() -> Response:
        return await console.show("overview.html")
