"""The coordinator: owns `coordination.db`, and with it the one total order of events.

Everything that waits is committed as one transaction (group commit). Durable things (events,
registrations) are answered after their commit; last-seen times and access rows may lose their last
second, so they are kept in memory and ride along with the next commit.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

import attrs
import trio
from attrs import frozen

from lithos.actors.blocking import Blocking
from lithos.actors.broadcaster import Broadcaster
from lithos.actors.kit import Inbox, Mailbox, run_batches
from lithos.core.agents import READ, Agent, AuditRow
from lithos.core.errors import StorageFailed
from lithos.core.events import AGENT_REGISTERED, Event, EventDraft
from lithos.stores.coordination import CoordinationStore
from lithos.stores.sqlite import DatabaseFailed
from lithos.telemetry import get_logger

log = get_logger("lithos.coordinator")

#: All writers' publications and every agent's registration at once; callers wait in their tasks.
CAPACITY = 256
BATCH = 256
#: Seconds that access rows and last-seen times may wait, as the durability promise allows.
LAZY_DELAY = 0.5
#: Access rows kept while the database refuses them; beyond it the oldest are lost, and counted.
AUDIT_BACKLOG = 100_000
#: Prune only now and then: an append must not pay for it each time.
PRUNE_EVERY = 1_000


class Journalled(Enum):
    """What became of events without a seq: `LATER` is retried, `OFF` means events are disabled."""

    LATER = "later"
    OFF = "off"


@frozen
class AppendEvents:
    """Journal events in this order; the reply is the last one's seq, or why there is none."""

    drafts: tuple[EventDraft, ...]


@frozen
class RegisterAgent:
    """Insert or merge an agent and announce it; the reply is whether it is new."""

    id: str
    name: str | None
    type: str | None
    metadata: Mapping[str, Any] | None


@frozen
class Flush:
    """Commit what rides along, now."""


CoordinatorMessage = AppendEvents | RegisterAgent | Flush
CoordinatorReply = int | Journalled | bool | None
CoordinatorMailbox = Mailbox[CoordinatorMessage, CoordinatorReply]


@frozen
class _Step:
    """One message of a batch, worked out: what it writes and what it answers."""

    events: tuple[Event, ...]
    agent: Agent | None
    reply: CoordinatorReply


class Coordinator:
    """The coordinator's state and its batches."""

    def __init__(
        self,
        store: CoordinationStore,
        blocking: Blocking,
        broadcaster: Broadcaster,
        clock: Callable[[], datetime],
        *,
        events_enabled: bool,
        journal_size: int,
    ) -> None:
        self.mailbox: CoordinatorMailbox = Mailbox("coordinator", CAPACITY)
        self._store = store
        self._blocking = blocking
        self._broadcaster = broadcaster
        self._clock = clock
        self._events_enabled = events_enabled
        self._journal_size = journal_size
        self._since_prune = PRUNE_EVERY  # a server that restarts often must prune too
        self._next_seq = store.next_seq()
        self.agents: dict[str, Agent] = {agent.id: agent for agent in store.agents()}
        self._reads: Counter[str] = Counter(store.read_counts())
        self._touched: set[str] = set()
        self._audit: deque[AuditRow] = deque(maxlen=AUDIT_BACKLOG)
        self._unwritten: list[Event] = []
        #: Why the last commit failed, until one succeeds.
        self.failure: str | None = None

    @property
    def head(self) -> int:
        """The seq of the newest event, or the one before the first."""
        return self._next_seq - 1

    def touch(self, agent_id: str) -> None:
        """Note that an agent acted; an unknown one is inserted."""
        now = self._clock()
        known = self.agents.get(agent_id)
        self.agents[agent_id] = (
            Agent(id=agent_id, first_seen_at=now, last_seen_at=now)
            if known is None
            else attrs.evolve(known, last_seen_at=max(now, known.last_seen_at))
        )
        self._touched.add(agent_id)

    def record_access(self, rows: Sequence[AuditRow]) -> None:
        """Remember accesses; they are stored within half a second."""
        if len(self._audit) + len(rows) > AUDIT_BACKLOG:
            log.warning("access rows lost", rows=len(rows), reason="the database has refused them for long")
        self._audit.extend(rows)
        self._reads.update(row.doc_id for row in rows if row.operation == READ)

    def reads_of(self, note_id: str) -> int:
        """How often a note was read."""
        return self._reads[note_id]

    async def start(
        self,
        inbox: Inbox[CoordinatorMessage, CoordinatorReply],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve messages until the mailbox closes, then commit what is left."""
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._tick)
            await run_batches(inbox, self._flush, size=BATCH, stats=self.mailbox.stats)
            nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 10.0):
            await self._flush([])

    async def _tick(self) -> None:
        while True:
            await trio.sleep(LAZY_DELAY)
            if self._touched or self._audit or self._unwritten:
                self.mailbox.nudge(Flush())

    async def _flush(self, messages: Sequence[CoordinatorMessage]) -> list[CoordinatorReply | Exception]:
        new_agents: dict[str, Agent] = {}
        steps = [self._work_out(message, new_agents) for message in messages]
        events = [*self._unwritten, *(event for step in steps for event in step.events)]
        touched, self._touched = self._touched, set()
        agents = [*(self.agents[agent_id] for agent_id in touched), *new_agents.values()]
        audit, self._audit = self._audit, deque(maxlen=AUDIT_BACKLOG)
        try:
            await self._blocking.run(lambda: self._commit(events, agents, audit))
        except (DatabaseFailed, OSError) as failure:
            self._touched |= touched
            self._audit = deque([*audit, *self._audit], maxlen=AUDIT_BACKLOG)
            return self._keep_for_later(steps, failure)
        if self.failure is not None:
            log.info("coordination database works again", events=len(events))
        self.failure = None
        self._unwritten.clear()
        for agent in new_agents.values():
            self._enter(agent)
        if events:
            self._broadcaster.publish(events)
        return [step.reply for step in steps]

    def _commit(self, events: Sequence[Event], agents: Sequence[Agent], audit: Collection[AuditRow]) -> None:
        if not (events or agents or audit):
            return
        is_prune_due = self._since_prune + len(events) > PRUNE_EVERY
        with self._store.transaction():
            self._store.append_events(events)
            self._store.put_agents(agents)
            self._store.add_audit(audit)
            if is_prune_due:
                self._store.prune_events(self._journal_size)
        self._since_prune = 0 if is_prune_due else self._since_prune + len(events)

    def _work_out(self, message: CoordinatorMessage, new_agents: dict[str, Agent]) -> _Step:
        if isinstance(message, AppendEvents):
            events = self._number(message.drafts)
            return _Step(events, None, events[-1].seq if events else Journalled.OFF)
        if isinstance(message, RegisterAgent):
            return self._register(message, new_agents)
        return _Step((), None, None)

    def _register(self, message: RegisterAgent, new_agents: dict[str, Agent]) -> _Step:
        now = self._clock()
        known = new_agents.get(message.id) or self.agents.get(message.id)
        agent = Agent(
            id=message.id,
            name=message.name if message.name is not None or known is None else known.name,
            type=message.type if message.type is not None or known is None else known.type,
            first_seen_at=known.first_seen_at if known else now,
            last_seen_at=now,
            metadata=dict(message.metadata or (known.metadata if known else {})),
        )
        new_agents[agent.id] = agent
        draft = EventDraft(
            type=AGENT_REGISTERED,
            agent=message.id,
            payload={"agent_id": message.id, "name": agent.name or ""},
            timestamp=now,
        )
        return _Step(self._number((draft,)), agent, known is None)

    def _enter(self, agent: Agent) -> None:
        """Remember a registered agent, which may have acted again while it was written."""
        seen = self.agents.get(agent.id)
        last_seen = max(agent.last_seen_at, seen.last_seen_at) if seen else agent.last_seen_at
        self.agents[agent.id] = attrs.evolve(agent, last_seen_at=last_seen)

    def _number(self, drafts: Sequence[EventDraft]) -> tuple[Event, ...]:
        if not self._events_enabled:
            return ()
        events = tuple(Event(seq=self._next_seq + i, draft=draft) for i, draft in enumerate(drafts))
        self._next_seq += len(events)
        return events

    def _keep_for_later(
        self, steps: Sequence[_Step], failure: Exception
    ) -> list[CoordinatorReply | Exception]:
        """Refuse what is not stored; keep the events of changes that are, so nothing overtakes them."""
        if self.failure is None:
            log.error("coordination database refuses to write", reason=str(failure))
        self.failure = str(failure)
        replies: list[CoordinatorReply | Exception] = []
        for step in steps:
            if step.agent is not None:
                replies.append(
                    StorageFailed(
                        f"The agent could not be registered: {failure}. Nothing was changed; "
                        "retry when the disk has space and is writable."
                    )
                )
            else:
                self._unwritten.extend(step.events)
                replies.append(Journalled.LATER if step.events else step.reply)
        return replies
