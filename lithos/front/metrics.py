"""`GET /metrics`: Prometheus text (events-http spec, section 7)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from quart import Response
from quart_trio import QuartTrio

from lithos.front.http import RouteModule
from lithos.metrics import CONTENT_TYPE

Scrape = Callable[[], Awaitable[bytes]]


def metrics_route(scrape: Scrape) -> RouteModule:
    """Add `/metrics`, which answers what `scrape` renders."""

    def add_routes(app: QuartTrio) -> None:
        @app.get("/metrics")
        async def show_metrics() -> Response:
            response = Response(await scrape())
            response.headers["Content-Type"] = CONTENT_TYPE
            response.headers["Cache-Control"] = "no-store"
            return response

    return add_routes
