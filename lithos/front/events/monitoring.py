"""The Quart-Trio application: `/health`, routes of other modules, JSON error responses.

Also `GET /audit`, the access log, and `GET /metrics`, Prometheus text (docs/spec/events-http.md §6 and §7).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from http import HTTPStatus
from typing import Final

from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from lithos.catalogue.catalogue import Catalogue
from lithos.core.findings import SCOPES
from lithos.core.times import parse_time
from lithos.front.server.ports import HealthReport, compact_json
from lithos.metrics import CONTENT_TYPE
from lithos.services.tasks.agents import AccessLog, with_titles
from lithos.services.upkeep.live_check import LiveCheck
from lithos.stores.sqlite import DatabaseFailed
from lithos.telemetry import get_logger

RouteModule = Callable[[QuartTrio], None]
"""Adds the routes of one module to the application."""


def create_app(health: HealthReport, routes: Iterable[RouteModule] = ()) -> QuartTrio:
    """Return the application. Streams are never cut by a timer; the gate bounds the bodies."""
    app = QuartTrio("lithos.front.events.monitoring", static_folder=None)
    app.config.update(RESPONSE_TIMEOUT=None, MAX_CONTENT_LENGTH=None, BACKGROUND_TASK_SHUTDOWN_TIMEOUT=None)
    app.url_map.merge_slashes = False  # an address has one spelling

    @app.get("/health")
    async def report_health() -> Response:
        status, body = await health.report()
        return json_response(status, body)

    app.register_error_handler(HTTPException, _describe)
    for add_routes in routes:
        add_routes(app)
    return app


def json_response(status: int, body: object) -> Response:
    """Return `body` as compact JSON that nobody caches, keys in their order."""
    response = Response(compact_json(body), status=status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


async def _describe(error: HTTPException) -> Response:
    """Answer `{"error": "not_found"}` and the like, keeping headers such as Allow."""
    status = error.code or HTTPStatus.INTERNAL_SERVER_ERROR
    response = json_response(status, {"error": HTTPStatus(status).name.lower()})
    kept = ("Allow", "Location", "Retry-After")
    for name, value in error.get_headers():
        if name in kept:
            response.headers[name] = value
    return response


log = get_logger("lithos.front.audit")

DEFAULT_LIMIT, MAX_LIMIT = 100, 1000
#: Every scope of `reconcile`.
ALL: Final = "all"
#: A `+` in a query string arrives as a space: one between a time and what looks like a zone.
_LOST_PLUS: Final = re.compile(r"(:\d{2}(?:[.,]\d+)?) (\d{2}:?\d{2})$")


def audit_route(access_log: AccessLog, notes: Catalogue) -> RouteModule:
    """Add `/audit`; with `titles=true` each entry has the `title` of its note."""

    def add_routes(app: QuartTrio) -> None:
        @app.get("/audit")
        async def show_accesses() -> Response:
            given = request.args
            try:
                after = read_after(given.get("after", ""))
            except ValueError as error:
                message = f"after is no time: {error}. Give ISO 8601, as in 2026-01-02T03:04:05Z."
                return json_response(400, {"error": "invalid_after", "message": message})
            try:
                entries = await access_log.entries(
                    agent=given.get("agent_id") or None,
                    doc=given.get("doc_id") or None,
                    after=after,
                    limit=read_limit(given.get("limit", "")),
                )
            except DatabaseFailed as failure:
                log.warning("access log not readable", reason=str(failure))
                return json_response(503, {"error": "audit_log_unavailable", "entries": []})
            if given.get("titles", "") == "true":
                entries = with_titles(entries, notes)
            return json_response(200, {"entries": entries})

    return add_routes


def read_after(text: str) -> datetime | None:
    """Parse a time, None for a blank one. Raises `ValueError`."""
    return parse_time(_LOST_PLUS.sub(r"\1+\2", text.strip())) if text.strip() else None


def read_limit(text: str) -> int:
    """Parse the limit and clamp it; the default when it is no integer."""
    try:
        return min(max(int(text), 1), MAX_LIMIT)
    except ValueError:
        return DEFAULT_LIMIT


def reconcile_route(check: LiveCheck) -> RouteModule:
    """Add `GET /reconcile`: what a dry run of `lithos reconcile` finds; `scope` is one of them or `all`."""

    def add_routes(app: QuartTrio) -> None:
        @app.get("/reconcile")
        async def show_faults() -> Response:
            wanted = request.args.get("scope", "") or ALL
            if wanted not in (ALL, *SCOPES):
                message = f"scope must be {ALL} or one of {', '.join(SCOPES)}."
                return json_response(400, {"error": "invalid_scope", "message": message})
            results = await check.run(SCOPES if wanted == ALL else (wanted,))
            return json_response(200, {"results": [result.as_json() for result in results]})

    return add_routes


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
