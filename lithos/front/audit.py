"""`GET /audit`: who read which note (events-http spec, section 6)."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from quart import Response, request
from quart_trio import QuartTrio

from lithos.core.times import parse_time
from lithos.front.http import RouteModule, json_response
from lithos.services.audit import AccessLog
from lithos.stores.sqlite import DatabaseFailed
from lithos.telemetry import get_logger

log = get_logger(__name__)

DEFAULT_LIMIT, MAX_LIMIT = 100, 1000
#: A `+` in a query string arrives as a space: one between a time and what looks like a zone.
_LOST_PLUS: Final = re.compile(r"(:\d{2}(?:[.,]\d+)?) (\d{2}:?\d{2})$")


def audit_route(access_log: AccessLog) -> RouteModule:
    """Add `/audit`."""

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
            return json_response(200, {"entries": entries})

    return add_routes


def read_after(text: str) -> datetime | None:
    """A time, None for a blank one. Raises `ValueError`."""
    return parse_time(_LOST_PLUS.sub(r"\1+\2", text.strip())) if text.strip() else None


def read_limit(text: str) -> int:
    """The limit in its bounds; the default when it is no integer."""
    try:
        return min(max(int(text), 1), MAX_LIMIT)
    except ValueError:
        return DEFAULT_LIMIT
