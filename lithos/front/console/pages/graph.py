"""Page `graph`: not built yet."""

from __future__ import annotations

from quart import Blueprint

from lithos.front.console.console import Console


def add_routes(console: Console, app: Blueprint) -> None:
    """Add the page."""
