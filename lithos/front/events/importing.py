"""`POST /import`: the records that `lithos import` reads, for the server that owns the data directory.

Only a token with the right `admin` may: the command shows the one in the owner's lock (mode 0600). Who needed
no token, since none is defined, may not. A token that is bound to an agent writes under no other name: notes
and rows that name another are left out, and told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import asdict
from pydantic_core import from_json
from quart import Response, request
from quart_trio import QuartTrio

from lithos.core.errors import Forbidden, InvalidInput, LithosError
from lithos.core.principals import ANYONE, Principal
from lithos.front.events.monitoring import RouteModule, json_response
from lithos.front.server.admissions import principal_of
from lithos.services.importing.importing import Importing, NoImport
from lithos.services.importing.records import Options, SourceEdge, batch_from_json, record_from_json

PATH: Final = "/import"


def import_route(importing: Importing) -> RouteModule:
    """Add `/import`: a `step` of begin, notes, edges, rows or end, with the answer to it."""

    def add_routes(app: QuartTrio) -> None:
        @app.post(PATH)
        async def take_step() -> Response:
            principal = principal_of(request.scope)  # type: ignore[arg-type]
            if principal is None or principal == ANYONE:
                message = (
                    "An import over HTTP needs a token with the right admin. Run `lithos import` as the user "
                    "who owns the data directory."
                )
                return json_response(403, {"error": "forbidden", "message": message})
            try:
                given = from_json(await request.get_data())
                return json_response(200, await _answer(importing, given, principal))
            except Forbidden as refusal:
                return json_response(403, {"error": refusal.code, "message": refusal.message})
            except (KeyError, TypeError, ValueError) as problem:
                message = f"The request is no step of an import: {problem}."
                return json_response(400, {"error": "invalid_input", "message": message})
            except NoImport as refusal:
                return json_response(409, {"error": "no_import", "message": refusal.message})
            except LithosError as refusal:
                status = 400 if isinstance(refusal, InvalidInput) else 503
                return json_response(status, {"error": refusal.code, "message": refusal.message})

    return add_routes


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
        begun = await importing.begin(options)
        return {
            "session": begun.session,
            "notes_folder": str(begun.notes_folder),
            "content_limit": begun.content_limit,
        }
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
    if step == "end":
        await importing.end(session)
        return {}
    raise ValueError(f"there is no step {step!r}")
