"""The Quart-Trio application: routes of other modules, JSON error responses.

Also `GET /audit`, the access log, `GET /metrics`, Prometheus text (docs/spec/events-http.md §6 and §7), and
`POST /import`, the records that `lithos import` reads, for the server that owns the data directory.

Only a token with the right `admin` may import: the command shows the one in the owner's lock (mode 0600).
Who needed no token, since none is defined, may not. A token that is bound to an agent writes under no other
name: notes and rows that name another are left out, and told.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from attrs import asdict
from pydantic_core import from_json
from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from lithos.catalogue.catalogue import Catalogue
from lithos.core.errors import Forbidden, InvalidInput, LithosError
from lithos.core.principals import ANYONE, COMMAND, OWNER, Principal, acting_as
from lithos.core.times import parse_time
from lithos.front.server.admissions import principal_of
from lithos.front.server.ports import compact_json
from lithos.metrics import CONTENT_TYPE
from lithos.services.importing.importing import Importing, NoImport
from lithos.services.importing.records import Options, SourceEdge, batch_from_json, record_from_json
from lithos.services.tasks.agents import AccessLog, with_titles
from lithos.services.upkeep.checks import Patient
from lithos.services.upkeep.reconcile import reconcile
from lithos.services.upkeep.reconcile_indices import SCOPES
from lithos.stores.sqlite import DatabaseFailed
from lithos.telemetry import get_logger

log = get_logger("lithos.front.audit")

DEFAULT_LIMIT, MAX_LIMIT = 100, 1000
#: Every scope of `reconcile`.
ALL: Final = "all"
#: A `+` in a query string arrives as a space: one between a time and what looks like a zone.
_LOST_PLUS: Final = re.compile(r"(:\d{2}(?:[.,]\d+)?) (\d{2}:?\d{2})$")

RouteModule = Callable[[QuartTrio], None]
"""Adds the routes of one module to the application."""


def create_app(routes: Iterable[RouteModule] = ()) -> QuartTrio:
    """Return the application. Streams are never cut by a timer; the gate bounds the bodies."""
    app = QuartTrio("lithos.front.events.monitoring", static_folder=None)
    app.config.update(RESPONSE_TIMEOUT=None, MAX_CONTENT_LENGTH=None, BACKGROUND_TASK_SHUTDOWN_TIMEOUT=None)
    app.url_map.merge_slashes = False  # an address has one spelling

    app.register_error_handler(HTTPException, _describe)
    for add_routes in routes:
        add_routes(app)
    return app


def json_response(status: int, body: object) -> Response:
    """Return `body` as compact JSON that nobody caches, keys in their order."""
    response = Response(compact_json(body), status=status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


def _refuse(status: int, code: str, message: str) -> Response:
    return json_response(status, {"error": code, "message": message})


async def _describe(error: HTTPException) -> Response:
    """Answer `{"error": "not_found"}` and the like, keeping headers such as Allow."""
    status = error.code or HTTPStatus.INTERNAL_SERVER_ERROR
    response = json_response(status, {"error": HTTPStatus(status).name.lower()})
    kept = ("Allow", "Location", "Retry-After")
    for name, value in error.get_headers():
        if name in kept:
            response.headers[name] = value
    return response


def add_audit(access_log: AccessLog, notes: Catalogue, app: QuartTrio) -> None:
    """Add `/audit`; with `titles=true` each entry has the `title` of its note."""

    @app.get("/audit")
    async def show_accesses() -> Response:
        given = request.args
        try:
            after = read_after(given.get("after", ""))
        except ValueError as error:
            message = f"after is no time: {error}. Give ISO 8601, as in 2026-01-02T03:04:05Z."
            return _refuse(400, "invalid_after", message)
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


def read_after(text: str) -> datetime | None:
    """Parse a time, None for a blank one. Raises `ValueError`."""
    return parse_time(_LOST_PLUS.sub(r"\1+\2", text.strip())) if text.strip() else None


def read_limit(text: str) -> int:
    """Parse the limit and clamp it; the default when it is no integer."""
    try:
        return min(max(int(text), 1), MAX_LIMIT)
    except ValueError:
        return DEFAULT_LIMIT


def add_reconcile(patient: Patient, app: QuartTrio) -> None:
    """Add `GET /reconcile`: what a dry run of `lithos reconcile` finds; `scope` is one of them or `all`."""

    @app.get("/reconcile")
    async def show_faults() -> Response:
        wanted = request.args.get("scope", "") or ALL
        if wanted not in (ALL, *SCOPES):
            message = f"scope must be {ALL} or one of {', '.join(SCOPES)}."
            return _refuse(400, "invalid_scope", message)
        results = await reconcile(patient, SCOPES if wanted == ALL else (wanted,), dry_run=True)
        return json_response(200, {"results": [result.as_json() for result in results]})


def add_metrics(scrape: Callable[[], Awaitable[bytes]], app: QuartTrio) -> None:
    """Add `/metrics`, which answers what `scrape` renders."""

    @app.get("/metrics")
    async def show_metrics() -> Response:
        response = Response(await scrape())
        response.headers["Content-Type"] = CONTENT_TYPE
        response.headers["Cache-Control"] = "no-store"
        return response


def add_import(importing: Importing, app: QuartTrio) -> None:
    """Add `/import`: a `step` of begin, notes, edges, links, rows or end, with the answer to it."""

    @app.post("/import")
    async def take_step() -> Response:
        principal = principal_of(request.scope)  # type: ignore[arg-type]
        if principal is None or principal == ANYONE:
            message = (
                "An import over HTTP needs a token with the right admin. Run `lithos import` as the user "
                "who owns the data directory."
            )
            return _refuse(403, "forbidden", message)
        try:
            given = from_json(await request.get_data())
            # Who has the owner's own token is the command `lithos import`.
            with acting_as(COMMAND if principal == OWNER else principal):
                answer = await _answer(importing, given, principal)
            return json_response(200, answer)
        except Forbidden as refusal:
            return _refuse(403, refusal.code, refusal.message)
        except (KeyError, TypeError, ValueError) as problem:
            return _refuse(400, "invalid_input", f"The request is no step of an import: {problem}.")
        except NoImport as refusal:
            return _refuse(409, "no_import", refusal.message)
        except LithosError as refusal:
            return _refuse(400 if isinstance(refusal, InvalidInput) else 503, refusal.code, refusal.message)


async def _answer(importing: Importing, given: Any, principal: Principal) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise TypeError("it is no JSON object")
    step = given["step"]
    if step == "begin":
        options = Options(
            kind=str(given["kind"]),
            agent=str(given["agent"]),
            into=str(given["into"]),
            dry_run=given["dry_run"] is True,
            recreate=given["recreate"] is True,
            is_bound=principal.agent is not None,
        )
        if principal.agent not in (None, options.agent):
            raise Forbidden(
                f"The token {principal.name} is bound to the agent {principal.agent}; it cannot import as "
                f"{options.agent}. Leave --agent out, or give that."
            )
        begun = asdict(await importing.begin(options))
        return {**begun, "notes_folder": str(begun["notes_folder"])}
    session = str(given["session"])
    if step == "notes":
        records = [record_from_json(record) for record in given["records"]]
        return {"outcomes": list(map(asdict, await importing.take(session, records)))}
    if step == "edges":
        edges = [SourceEdge(str(one), str(relation), str(other)) for one, relation, other in given["edges"]]
        return {"results": await importing.connect(session, edges)}
    if step == "rows":
        carried = await importing.carry(session, batch_from_json(given))
        kept = [[row.key, row.reason, row.is_taken] for row in carried.kept]
        counts = {name: getattr(carried, name) for name in ("created", "updated", "same")}
        return {**counts, "kept": kept}
    if step == "links":
        return {"links": list(map(asdict, await importing.dead_links(session, int(given["start"]))))}
    if step == "end":
        await importing.end(session)
        return {}
    raise ValueError(f"there is no step {step!r}")
