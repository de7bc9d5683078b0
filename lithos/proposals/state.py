"""What proposals tell of the state of a server."""

from __future__ import annotations

from collections.abc import Iterator

from lithos.actors.coordinating.coordinator import Coordinator
from lithos.kernel.state import Component, Number
from lithos.metrics import Sample


def look_at_proposals(coordinator: Coordinator) -> Component | None:
    """How many wait for a person."""
    pending = len(coordinator.proposals)
    return Component("ok", details={"pending_proposals": pending}) if pending else None


def count_proposals(coordinator: Coordinator) -> Iterator[Number]:
    """Those that wait for a person."""
    yield Number(120, "pending_proposals", len(coordinator.proposals))


def measure_proposals(coordinator: Coordinator) -> Iterator[Sample]:
    """Those that wait for a person."""
    yield Sample("pending_proposals", len(coordinator.proposals))
