"""Quart-Trio application with the routes of other modules and with JSON error responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus

from quart import Response
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from lithos.server.http.ports import compact_json

RouteModule = Callable[[QuartTrio], None]
"""Adds the routes of one module to the application."""


def create_app(routes: Iterable[RouteModule] = ()) -> QuartTrio:
    """Return the Quart application.

    The application has no time limit for streams and no size limit for bodies, which the gate limits.
    """
    app = QuartTrio("lithos.server.http.quart_app", static_folder=None)
    app.config.update(RESPONSE_TIMEOUT=None, MAX_CONTENT_LENGTH=None, BACKGROUND_TASK_SHUTDOWN_TIMEOUT=None)
    app.url_map.merge_slashes = False  # an address has exactly one spelling

    app.register_error_handler(HTTPException, _describe)
    for add_routes in routes:
        add_routes(app)
    return app


def json_response(status: int, body: object) -> Response:
    """Return `body` as a compact JSON response that must not be cached. The keys keep their order."""
    response = Response(compact_json(body), status=status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


def refuse(status: int, code: str, message: str) -> Response:
    """Return a JSON response with an error code and a message."""
    return json_response(status, {"error": code, "message": message})


async def _describe(error: HTTPException) -> Response:
    """Return a JSON error response such as `{"error": "not_found"}`. Headers such as Allow are kept."""
    status = error.code or HTTPStatus.INTERNAL_SERVER_ERROR
    response = json_response(status, {"error": HTTPStatus(status).name.lower()})
    kept = ("Allow", "Location", "Retry-After")
    for name, value in error.get_headers():
        if name in kept:
            response.headers[name] = value
    return response
