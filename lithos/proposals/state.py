"""Health and metrics of proposals."""

from __future__ import annotations

from collections.abc import Iterator

from lithos.kernel.metrics import GaugeSample
from lithos.kernel.state import Component, Number
from lithos.proposals.model import PendingProposals


def look_at_proposals(pending: PendingProposals) -> Component | None:
    """Return the health component with the number of pending proposals."""
    return Component("ok", details={"pending_proposals": len(pending)}) if len(pending) else None


def count_proposals(pending: PendingProposals) -> Iterator[Number]:
    """Count the pending proposals."""
    yield Number(120, "pending_proposals", len(pending))


def measure_proposals(pending: PendingProposals) -> Iterator[GaugeSample]:
    """Return the number of pending proposals as a metric."""
    yield GaugeSample("pending_proposals", len(pending))
