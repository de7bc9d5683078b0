"""Health, counts and gauges of the journal."""

from __future__ import annotations

from collections.abc import Iterator

from lithos.events.journal.broadcaster import Broadcaster
from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.reading import JournalThread
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.metrics import GaugeSample
from lithos.kernel.state import Component, Number


def look_at_journal(coordinator: Coordinator) -> Component:
    """Report whether events can be journalled."""
    details = {"head": coordinator.head}
    if coordinator.failure:
        return Component("degraded", f"the journal cannot be written: {coordinator.failure}", details)
    return Component("ok", None, details)


def count_agents(coordinator: Coordinator) -> Iterator[Number]:
    """Yield the number of known agents."""
    yield Number(30, "agents", len(coordinator.agents))


def measure_journal(coordinator: Coordinator, broadcaster: Broadcaster) -> Iterator[GaugeSample]:
    """Yield the gauges for agents and events."""
    yield GaugeSample("agents", len(coordinator.agents))
    yield GaugeSample("event_head_seq", coordinator.head)
    yield GaugeSample("event_queue_utilisation", broadcaster.utilisation, ("fullest",))


async def measure_kept_events(store: CoordinationStore, reading: JournalThread) -> list[GaugeSample]:
    """Return the gauges for the events in the journal."""
    return [GaugeSample("event_journal_events", await reading.run(store.event_count))]
