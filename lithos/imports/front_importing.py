"""`POST /import`: endpoint that receives records from `lithos import` if a server is running.

The endpoint needs a token with the right `admin`. The command uses the token in the owner's lock file (mode
0600). Callers without a token may not import, even if no token is defined. A token that is bound to an agent
only writes under that agent's name. Notes and rows that name another agent are reported and not imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import asdict
from pydantic_core import from_json
from quart import Response, request
from quart_trio import QuartTrio

from lithos.imports.service.importing import Importing, NoImport
from lithos.imports.service.records import Options, SourceEdge, batch_from_json, record_from_json
from lithos.kernel.values.errors import Forbidden, InvalidInput, LithosError
from lithos.kernel.values.principals import ANYONE, COMMAND, OWNER, Principal, acting_as
from lithos.server.http.admissions import principal_of
from lithos.server.http.quart_app import json_response, refuse


def add_import(importing: Importing, app: QuartTrio) -> None:
    """Add the endpoint `/import`.

    A request is one step (begin, notes, edges, links, rows or end). The response is the result of the step.
    """

    @app.post("/import")
    async def take_step() -> Response:
        principal = principal_of(request.scope)  # type: ignore[arg-type]
        if principal is None or principal == ANYONE:
            message = (
                "Import over HTTP needs a token with the right admin. Run `lithos import` as the "
                "owner of the data directory."
            )
            return refuse(403, "forbidden", message)
        try:
            given = from_json(await request.get_data())
            # A caller with the owner's own token is treated as the command `lithos import`.
            with acting_as(COMMAND if principal == OWNER else principal):
                answer = await _answer(importing, given, principal)
            return json_response(200, answer)
        except Forbidden as refusal:
            return refuse(403, refusal.code, refusal.message)
        except (KeyError, TypeError, ValueError) as problem:
            return refuse(400, "invalid_input", f"The request is not a valid import step: {problem}.")
        except NoImport as refusal:
            return refuse(409, "no_import", refusal.message)
        except LithosError as refusal:
            return refuse(400 if isinstance(refusal, InvalidInput) else 503, refusal.code, refusal.message)


async def _answer(importing: Importing, given: Any, principal: Principal) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise TypeError("the body is not a JSON object")
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
                f"Token {principal.name} is bound to agent {principal.agent} and cannot import as "
                f"{options.agent}. Omit --agent, or pass the bound agent."
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
    raise ValueError(f"unknown step {step!r}")
