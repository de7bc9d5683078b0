"""`POST /import`: the records that `lithos import` reads, for the server that owns the data directory.

Only who can write in the data directory may: the command leaves a key there, of mode 0600, and shows it.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from quart import Response, request
from quart_trio import QuartTrio

from lithos.core.errors import InvalidInput, LithosError
from lithos.front.events.monitoring import RouteModule, json_response
from lithos.services.importing.importing import Importing, NoImport
from lithos.services.importing.records import Options, SourceEdge, record_from_json

PATH: Final = "/import"
KEY_HEADER: Final = "X-Lithos-Import-Key"
#: Returns the key that the command left in the data directory; None without one.
ReadKey = Callable[[], Awaitable[str | None]]


def import_route(importing: Importing, read_key: ReadKey) -> RouteModule:
    """Add `/import`: a `step` of begin, notes, edges or end, with the answer to it."""

    def add_routes(app: QuartTrio) -> None:
        @app.post(PATH)
        async def take_step() -> Response:
            known, given = await read_key(), request.headers.get(KEY_HEADER, "")
            if known is None or not hmac.compare_digest(known.encode(), given.encode()):
                message = (
                    "The key in the data directory is another: another import began, or this is not the "
                    "user who owns the directory. Run `lithos import` there."
                )
                return json_response(403, {"error": "import_forbidden", "message": message})
            try:
                return json_response(200, await _answer(importing, await request.get_json(force=True)))
            except (KeyError, TypeError, ValueError) as problem:
                message = f"The request is no step of an import: {problem}."
                return json_response(400, {"error": "invalid_input", "message": message})
            except NoImport as refusal:
                return json_response(409, {"error": "no_import", "message": refusal.message})
            except LithosError as refusal:
                status = 400 if isinstance(refusal, InvalidInput) else 503
                return json_response(status, {"error": refusal.code, "message": refusal.message})

    return add_routes


async def _answer(importing: Importing, given: Any) -> Mapping[str, Any]:
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
        )
        begun = await importing.begin(options)
        return {
            "session": begun.session,
            "notes_folder": str(begun.notes_folder),
            "content_limit": begun.content_limit,
        }
    session = str(given["session"])
    if step == "notes":
        records = [record_from_json(record) for record in given["records"]]
        return {"outcomes": [outcome.to_json() for outcome in await importing.take(session, records)]}
    if step == "edges":
        edges = [SourceEdge(str(one), str(relation), str(other)) for one, relation, other in given["edges"]]
        return {"results": await importing.connect(session, edges)}
    if step == "end":
        await importing.end(session)
        return {}
    raise ValueError(f"there is no step {step!r}")
