"""`GET /metrics` in the Prometheus text format (docs/spec/events-http.md §7), and `GET /reconcile`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from quart import Response, request
from quart_trio import QuartTrio

from lithos.kernel.metrics import CONTENT_TYPE
from lithos.server.http.quart_app import json_response, refuse
from lithos.upkeep.checks.checks import Installed
from lithos.upkeep.checks.reconcile import reconcile
from lithos.upkeep.checks.reconcile_indices import SCOPES

#: Value of the parameter `scope` that selects all scopes.
ALL: Final = "all"


def add_metrics(scrape: Callable[[], Awaitable[bytes]], app: QuartTrio) -> None:
    """Add the route `/metrics`, which returns the output of `scrape`."""

    @app.get("/metrics")
    async def show_metrics() -> Response:
        response = Response(await scrape())
        response.headers["Content-Type"] = CONTENT_TYPE
        response.headers["Cache-Control"] = "no-store"
        return response


def add_reconcile(patient: Installed, app: QuartTrio) -> None:
    """Add the route `GET /reconcile`.

    The route returns the result of a dry run of `lithos reconcile`. The query parameter `scope` is the name
    of one scope, or `all`.
    """

    @app.get("/reconcile")
    async def show_faults() -> Response:
        wanted = request.args.get("scope", "") or ALL
        if wanted not in (ALL, *SCOPES):
            message = f"Invalid scope. Use {ALL} or one of {', '.join(SCOPES)}."
            return refuse(400, "invalid_scope", message)
        results = await reconcile(patient, SCOPES if wanted == ALL else (wanted,), dry_run=True)
        return json_response(200, {"results": [result.as_json() for result in results]})
