"""The journal as a capability: coordinator, subscribers and journal readers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lithos.events.journal.boards import Boards, JournalBoard
from lithos.events.journal.broadcaster import Broadcaster
from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.reading import JournalThread
from lithos.events.journal.settled_clock import SettledClock
from lithos.events.model.ports import ExtraRows
from lithos.events.reading.agents import AccessLog, Agents, Cursors
from lithos.events.reading.event_stream import Activity, EventStreams
from lithos.events.reading.requests import Requests
from lithos.events.reading.retention import Upkeep
from lithos.events.reading.told_projects import ToldProjects
from lithos.events.rows.requests import RequestRows
from lithos.events.rows.store import IMPORT_TABLES, JOURNAL_TABLES, CoordinationStore
from lithos.events.settings import EventsConfig
from lithos.events.state import count_agents, look_at_journal, measure_journal, measure_kept_events
from lithos.kernel.actors.threads import Threads
from lithos.kernel.capability import Background, Capability, Store
from lithos.kernel.databases.open_stores import Occasion
from lithos.kernel.metrics import Metrics
from lithos.kernel.parts import Clock
from lithos.kernel.state import Gauge, HealthCheck, Observed
from lithos.kernel.values.events import Event
from lithos.server.tools.ports import AgentProjects, KnownCalls


def make_broadcaster(events: EventsConfig) -> Broadcaster:
    """Return the broadcaster for committed events."""
    return Broadcaster(events.event_buffer_size, events.subscriber_queue_size)


def make_settled_clock(clock: Clock, store: CoordinationStore) -> SettledClock:
    """Return the retention clock."""
    return SettledClock(clock, store.settled())


def make_coordinator(
    store: CoordinationStore,
    broadcaster: Broadcaster,
    clock: Clock,
    events: EventsConfig,
    boards: Boards,
    metrics: Metrics,
    records: ExtraRows | None,
) -> Coordinator:
    """Return the coordinator, which owns `coordination.db`."""
    return Coordinator(
        store,
        boards,
        Threads(),
        broadcaster,
        clock,
        journal_size=events.journal_size,
        on_commit=partial(_count_events, metrics),
        records=records,
    )


def make_journal_board(store: CoordinationStore) -> JournalBoard:
    """Return the board for the journal's own commands."""
    return JournalBoard(store.written(RequestRows))


def _count_events(metrics: Metrics, events: Sequence[Event], seconds: float) -> None:
    metrics.observe("journal_append_duration_seconds", seconds)
    for event in events:
        metrics.count("events", event.draft.type)


def open_journal(occasion: Occasion) -> CoordinationStore:
    """Open the journal store."""
    return CoordinationStore.open(occasion.private / "coordination.db", occasion.now)


def make_requests(coordinator: Coordinator) -> Requests:
    """Return the registry of calls with a `request_id`."""
    return Requests(coordinator.mailbox)


def make_known_calls(requests: Requests) -> KnownCalls:
    """Return the port with which the tool registry looks up known calls."""
    return KnownCalls(requests.once)


def make_agent_projects(told: ToldProjects) -> AgentProjects:
    """Return the port with which the tool registry finds the project of a call."""
    return AgentProjects(told.known, told.tell, told.find)


def make_access_log(coordinator: Coordinator, store: CoordinationStore, reading: JournalThread) -> AccessLog:
    """Return the reader of the access log."""
    return AccessLog(coordinator.mailbox, store, reading)


def make_cursors(coordinator: Coordinator, store: CoordinationStore, reading: JournalThread) -> Cursors:
    """Return the store for subscriber cursors."""
    return Cursors(coordinator.mailbox, store, reading)


def make_streams(broadcaster: Broadcaster, store: CoordinationStore, reading: JournalThread) -> EventStreams:
    """Return the factory for event streams."""
    return EventStreams(broadcaster, store, reading)


def make_activity(broadcaster: Broadcaster, store: CoordinationStore, reading: JournalThread) -> Activity:
    """Return the reader of recent events."""
    return Activity(broadcaster, store, reading)


EVENTS = Capability(
    name="events",
    makers=(
        Metrics,
        JournalThread,
        make_broadcaster,
        make_settled_clock,
        make_journal_board,
        make_coordinator,
        make_requests,
        make_known_calls,
        ToldProjects,
        make_agent_projects,
        make_access_log,
        make_cursors,
        make_streams,
        make_activity,
        Agents,
        Upkeep,
    ),
    background=(Background(Upkeep, Upkeep.run),),
    front="lithos.events.front",
    boards=(JournalBoard,),
    tables=(JOURNAL_TABLES, IMPORT_TABLES),
    stores=(Store(10, open_journal),),
    health=(HealthCheck("events", 7, look_at_journal),),
    statistics=(count_agents,),
    gauges=(Gauge(50, measure_journal), Gauge(72, measure_kept_events)),
    actors=(Observed(6, Coordinator),),
)
