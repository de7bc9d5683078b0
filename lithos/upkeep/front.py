"""The HTTP endpoints of upkeep: metrics and `GET /reconcile`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lithos.kernel.parts import Parts
from lithos.server.http.front import Front
from lithos.server.service_state import Gauges
from lithos.upkeep.checks.checks import Installed

if TYPE_CHECKING:
    from quart_trio import QuartTrio


async def add_to(front: Front) -> None:
    """Add the upkeep endpoints to the front."""
    front.routes.append(partial(_add_routes, front.parts))


def _add_routes(parts: Parts, app: QuartTrio) -> None:
    from lithos.upkeep.console.monitoring import add_metrics, add_reconcile  # noqa: PLC0415 - Quart loads late

    add_metrics(parts.get(Gauges).scrape, app)
    add_reconcile(parts.get(Installed), app)
