"""`GET /audit`: the access log (docs/spec/events-http.md §6)."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from quart import Response, request
from quart_trio import QuartTrio

from lithos.events.reading.agents import AccessLog, NoteTitles, with_titles
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import LithosError
from lithos.kernel.values.times import parse_time
from lithos.server.http.quart_app import json_response, refuse

log = get_logger("lithos.front.audit")

DEFAULT_LIMIT, MAX_LIMIT = 100, 1000
#: Pattern of a time zone whose `+` became a space, which query strings often cause.
_LOST_PLUS: Final = re.compile(r"(:\d{2}(?:[.,]\d+)?) (\d{2}:?\d{2})$")


def add_audit(access_log: AccessLog, notes: NoteTitles, app: QuartTrio) -> None:
    """Add `/audit` to `app`. With `titles=true`, entries include the `title` of their note."""

    @app.get("/audit")
    async def show_accesses() -> Response:
        given = request.args
        try:
            after = read_after(given.get("after", ""))
        except ValueError as error:
            message = f"after is not a valid time: {error}. Use ISO 8601, for example 2026-01-02T03:04:05Z."
            return refuse(400, "invalid_after", message)
        doc = given.get("doc_id") or None
        try:
            doc = doc and notes.identify(doc)
        except LithosError as refusal:
            return refuse(400, refusal.code, refusal.message)
        try:
            entries = await access_log.entries(
                agent=given.get("agent_id") or None,
                doc=doc,
                after=after,
                limit=read_limit(given.get("limit", "")),
            )
        except DatabaseFailed as failure:
            log.warning("access log not readable", reason=str(failure))
            return json_response(503, {"error": "audit_log_unavailable", "entries": []})
        if given.get("titles", "") == "true":
            entries = with_titles(entries, notes)
        return json_response(200, {"entries": entries})


def read_after(text: str) -> datetime | None:
    """Parse a time. Return None for a blank text. Raises `ValueError`."""
    return parse_time(_LOST_PLUS.sub(r"\1+\2", text.strip())) if text.strip() else None


def read_limit(text: str) -> int:
    """Return the limit within its allowed range. If it is not an integer, return the default."""
    try:
        return min(max(int(text), 1), MAX_LIMIT)
    except ValueError:
        return DEFAULT_LIMIT
