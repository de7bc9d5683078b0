"""The part of proposals in the state of a server."""

from __future__ import annotations

from collections.abc import Iterator

from lithos.kernel.metrics import GaugeSample
from lithos.kernel.state import Component, Number
from lithos.proposals.model import PendingProposals


def look_at_proposals(pending: PendingProposals) -> Component | None:
    """How many wait for a person."""
    return Component("ok", details={"pending_proposals": len(pending)}) if len(pending) else None


def count_proposals(pending: PendingProposals) -> Iterator[Number]:
    """Those that wait for a person."""
    yield Number(120, "pending_proposals", len(pending))


def measure_proposals(pending: PendingProposals) -> Iterator[GaugeSample]:
    """Those that wait for a person."""
    yield GaugeSample("pending_proposals", len(pending))
