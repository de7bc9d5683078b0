"""The HTTP endpoint for imports."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lithos.imports.service.importing import Importing
from lithos.kernel.parts import Parts
from lithos.server.http.front import Front

if TYPE_CHECKING:
    from quart_trio import QuartTrio


async def add_to(front: Front) -> None:
    """Add the import endpoint to the web application."""
    front.routes.append(partial(_add_routes, front.parts))


def _add_routes(parts: Parts, app: QuartTrio) -> None:
    from lithos.imports.front_importing import add_import  # noqa: PLC0415 - Quart loads late

    add_import(parts.get(Importing), app)
