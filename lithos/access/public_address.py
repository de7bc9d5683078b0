"""Health check for the public address of the server."""

from __future__ import annotations

from collections.abc import AsyncIterator

from lithos.access.commands_reaching import check_public_url
from lithos.kernel.values.findings import DOCTOR, CheckFinding, Installation, check, has_data
from lithos.server.settings import ServerConfig


def _public_url(patient: Installation) -> str | None:
    """Return the configured public address, or else that of the running server."""
    record = patient.owner.record
    running = record.public_url if patient.is_live and record is not None else None
    return patient.config.of(ServerConfig).public_url or running


@check("public address", DOCTOR, place=80, when=lambda each: has_data(each) and bool(_public_url(each)))
async def check_public_address(patient: Installation) -> AsyncIterator[CheckFinding]:
    """Check whether remote clients can reach the server."""
    address = _public_url(patient) or ""
    for each in await check_public_url(address, patient.clock, is_live=patient.is_live):
        yield each
