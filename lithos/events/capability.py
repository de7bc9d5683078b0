"""The journal as a capability: the coordinator, who is subscribed, and what readers ask."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lithos.actors.blocking import Threads
from lithos.actors.coordinating.broadcaster import Broadcaster
from lithos.actors.coordinating.coordinator import Coordinator
from lithos.actors.coordinating.reading import JournalThread
from lithos.actors.settled_clock import SettledClock
from lithos.catalogue.note_records import NoteRecords
from lithos.core.events import Event
from lithos.core.tasks.model import ClaimTimes
from lithos.events.settings import EventsConfig
from lithos.kernel.capability import Background, Capability
from lithos.kernel.parts import Clock
from lithos.metrics import Metrics
from lithos.proposals.settings import ProposalsConfig
from lithos.services.tasks.agents import AccessLog, Agents, Cursors
from lithos.services.tasks.event_stream import Activity, EventStreams
from lithos.services.tasks.requests import Requests
from lithos.services.tasks.retention import Upkeep
from lithos.services.tasks.timeline import Timelines
from lithos.stores.coordination.store import CoordinationStore
from lithos.tasks.settings import CoordinationConfig


def make_broadcaster(events: EventsConfig) -> Broadcaster:
    """Make the broadcaster of committed events."""
    return Broadcaster(events.event_buffer_size, events.subscriber_queue_size)


def make_settled_clock(clock: Clock, store: CoordinationStore) -> SettledClock:
    """Make the clock of retention."""
    return SettledClock(clock, store.settled())


def make_coordinator(
    store: CoordinationStore,
    broadcaster: Broadcaster,
    clock: Clock,
    events: EventsConfig,
    coordination: CoordinationConfig,
    proposals: ProposalsConfig,
    metrics: Metrics,
    records: NoteRecords,
) -> Coordinator:
    """Make the owner of `coordination.db`."""
    return Coordinator(
        store,
        Threads(),
        broadcaster,
        clock,
        journal_size=events.journal_size,
        claim_times=ClaimTimes(
            coordination.claim_default_ttl_minutes,
            coordination.claim_max_ttl_minutes,
            coordination.max_attempts,
            coordination.retry_minutes,
        ),
        strict=coordination.strict,
        proposal_days=proposals.days,
        on_commit=partial(_count_events, metrics),
        records=records,
    )


def _count_events(metrics: Metrics, events: Sequence[Event], seconds: float) -> None:
    metrics.observe("journal_append_duration_seconds", seconds)
    for event in events:
        metrics.count("events", event.draft.type)


def make_requests(coordinator: Coordinator) -> Requests:
    """Make what knows calls by their `request_id`."""
    return Requests(coordinator.mailbox)


def make_access_log(coordinator: Coordinator, store: CoordinationStore, reading: JournalThread) -> AccessLog:
    """Make the reader of the audit trail."""
    return AccessLog(coordinator.mailbox, store, reading)


def make_cursors(coordinator: Coordinator, store: CoordinationStore, reading: JournalThread) -> Cursors:
    """Make the keeper of positions in the journal."""
    return Cursors(coordinator.mailbox, store, reading)


def make_streams(broadcaster: Broadcaster, store: CoordinationStore, reading: JournalThread) -> EventStreams:
    """Make what opens streams of events."""
    return EventStreams(broadcaster, store, reading)


def make_activity(broadcaster: Broadcaster, store: CoordinationStore, reading: JournalThread) -> Activity:
    """Make the reader of what agents did."""
    return Activity(broadcaster, store, reading)


EVENTS = Capability(
    name="events",
    makers=(
        Metrics,
        JournalThread,
        make_broadcaster,
        make_settled_clock,
        make_coordinator,
        make_requests,
        make_access_log,
        make_cursors,
        make_streams,
        make_activity,
        Agents,
        Timelines,
        Upkeep,
    ),
    background=(Background(Upkeep, Upkeep.run),),
)
