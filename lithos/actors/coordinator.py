"""The coordinator: owns `coordination.db`, and with it the one total order of events.

Everything that waits is committed as one transaction (group commit). Durable things (events,
registrations, task commands) are answered after their commit; last-seen times and access rows may
lose their last second, so they are kept in memory and ride along with the next commit.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from time import perf_counter

import attrs
import trio

from lithos.actors.blocking import Blocking
from lithos.actors.broadcaster import Broadcaster
from lithos.actors.coordinator_messages import (
    AppendEvents,
    CoordinatorMailbox,
    CoordinatorMessage,
    CoordinatorReply,
    Flush,
    Journalled,
    MoveCursor,
    RegisterAgent,
    RunCommand,
)
from lithos.actors.coordinator_steps import Committed, Step, make_id
from lithos.actors.kit import Inbox, Mailbox, run_batches
from lithos.actors.task_board import TaskBoard
from lithos.core.agents import READ, Agent, AuditRow
from lithos.core.claims import ClaimTimes
from lithos.core.errors import LithosError, StorageFailed
from lithos.core.events import AGENT_REGISTERED, Event, EventDraft
from lithos.stores.coordination import CoordinationStore
from lithos.stores.sqlite import DatabaseFailed
from lithos.telemetry import get_logger

__all__ = [
    "AppendEvents",
    "Coordinator",
    "CoordinatorMailbox",
    "Flush",
    "Journalled",
    "MoveCursor",
    "RegisterAgent",
    "RunCommand",
    "make_id",
]

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
        claim_times: ClaimTimes = ClaimTimes(),  # noqa: B008 - frozen
        new_id: Callable[[], str] = make_id,
        on_commit: Callable[[Sequence[Event], float], None] | None = None,
    ) -> None:
        self.mailbox: CoordinatorMailbox = Mailbox("coordinator", CAPACITY)
        self._store = store
        self._blocking = blocking
        self._broadcaster = broadcaster
        self._clock = clock
        #: Told the events of every commit and the seconds it took.
        self._on_commit = on_commit
        #: Told what each commit would have journalled, where events are switched off; must not wait.
        self.on_unjournalled: Callable[[Sequence[EventDraft]], None] = lambda _: None
        self._board = TaskBoard(store.task_rows(), claim_times, new_id)
        self._events_enabled = events_enabled
        self._journal_size = journal_size
        self._since_prune = PRUNE_EVERY  # a server that restarts often must prune too
        self._next_seq = store.next_seq()
        broadcaster.head = self.head
        self.agents: dict[str, Agent] = {agent.id: agent for agent in store.agents()}
        self._reads: Counter[str] = Counter(store.read_counts())
        self._touched: set[str] = set()
        self._audit: deque[AuditRow] = deque(maxlen=AUDIT_BACKLOG)
        #: Events of changes that are stored, while the journal cannot be written.
        self._unwritten: list[EventDraft] = []
        #: Why the last commit failed, until one succeeds.
        self.failure: str | None = None

    @property
    def head(self) -> int:
        """The seq of the newest event, or the one before the first."""
        return self._next_seq - 1

    @property
    def unwritten_origins(self) -> frozenset[str]:
        """The origins of events that it keeps until the journal can be written."""
        return frozenset(draft.origin for draft in self._unwritten)

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
        touched, self._touched = self._touched, set()
        agents = [*(self.agents[agent_id] for agent_id in touched), *new_agents.values()]
        audit, self._audit = self._audit, deque(maxlen=AUDIT_BACKLOG)
        began = perf_counter()
        try:
            committed = await self._blocking.run(lambda: self._commit(steps, agents, audit))
        except (DatabaseFailed, OSError) as failure:
            self._touched |= touched
            self._audit = deque([*audit, *self._audit], maxlen=AUDIT_BACKLOG)
            return self._keep_for_later(steps, failure)
        if self.failure is not None:
            log.info("coordination database works again", events=len(committed.events))
        self.failure = None
        self._unwritten.clear()
        for agent in new_agents.values():
            self._enter(agent)
        if committed.events:
            self._next_seq = committed.events[-1].seq + 1
            self._broadcaster.publish(committed.events)
            if self._on_commit is not None:
                self._on_commit(committed.events, perf_counter() - began)
        self.on_unjournalled(committed.unjournalled)
        return committed.replies

    def _commit(
        self, steps: Sequence[Step], agents: Sequence[Agent], audit: Collection[AuditRow]
    ) -> Committed:
        """One transaction. A refused command undoes only itself."""
        if not (self._unwritten or agents or audit or any(step.needs_transaction for step in steps)):
            return Committed([step.reply for step in steps], [])
        now = self._clock()
        unjournalled = [] if self._events_enabled else list(self._unwritten)
        committed = Committed([], self._number(self._unwritten, self._next_seq), unjournalled)
        with self._store.transaction():
            self._store.put_agents(agents)
            for step in steps:
                self._carry_out(step, committed, now)
            self._store.append_events(committed.events)
            self._store.add_audit(audit)
            is_prune_due = self._since_prune + len(committed.events) > PRUNE_EVERY
            if is_prune_due:
                self._store.prune_events(self._journal_size)
        self._since_prune = 0 if is_prune_due else self._since_prune + len(committed.events)
        return committed

    def _carry_out(self, step: Step, committed: Committed, now: datetime) -> None:
        reply, drafts = step.reply, step.drafts
        if step.cursor is not None:
            reply = self._move_cursor(step.cursor, now)
        if step.command is not None:
            try:
                with self._store.savepoint():
                    done = self._board.execute(step.command, now)
            except LithosError as refusal:
                committed.replies.append(refusal)
                return
            reply, drafts = done.reply, done.events
        events = self._number(drafts, self._next_seq + len(committed.events))
        committed.events.extend(events)
        if not self._events_enabled:
            committed.unjournalled.extend(drafts)
        if reply is Journalled.OFF and events:
            reply = events[-1].seq
        committed.replies.append(reply)

    def _move_cursor(self, cursor: MoveCursor, now: datetime) -> int:
        stored = self._store.cursor_being_written(cursor.subscriber)
        if cursor.seq is None and stored is not None:
            return stored
        seq = self.head if cursor.seq is None else cursor.seq
        self._store.move_cursor(cursor.subscriber, seq, now)
        return seq if stored is None else max(seq, stored)

    def _work_out(self, message: CoordinatorMessage, new_agents: dict[str, Agent]) -> Step:
        if isinstance(message, AppendEvents):
            return Step(drafts=message.drafts, reply=Journalled.OFF)
        if isinstance(message, RegisterAgent):
            return self._register(message, new_agents)
        if isinstance(message, RunCommand):
            return Step(command=message.command)
        if isinstance(message, MoveCursor):
            return Step(cursor=message)
        return Step()

    def _register(self, message: RegisterAgent, new_agents: dict[str, Agent]) -> Step:
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
        return Step(drafts=(draft,), agent=agent, reply=known is None)

    def _enter(self, agent: Agent) -> None:
        """Remember a registered agent, which may have acted again while it was written."""
        seen = self.agents.get(agent.id)
        last_seen = max(agent.last_seen_at, seen.last_seen_at) if seen else agent.last_seen_at
        self.agents[agent.id] = attrs.evolve(agent, last_seen_at=last_seen)

    def _number(self, drafts: Sequence[EventDraft], first: int) -> list[Event]:
        """Give events their places; the order is final only with the commit."""
        if not self._events_enabled:
            return []
        return [Event(seq=first + position, draft=draft) for position, draft in enumerate(drafts)]

    def _keep_for_later(
        self, steps: Sequence[Step], failure: Exception
    ) -> list[CoordinatorReply | Exception]:
        """Refuse what is not stored; keep the events of changes that are, so nothing overtakes them."""
        if self.failure is None:
            log.error("coordination database refuses to write", reason=str(failure))
        self.failure = str(failure)
        replies: list[CoordinatorReply | Exception] = []
        for step in steps:
            if step.must_be_stored:
                replies.append(
                    StorageFailed(
                        f"The change could not be stored: {failure}. Nothing was changed; "
                        "retry when the disk has space and is writable."
                    )
                )
            else:
                self._unwritten.extend(step.drafts)
                replies.append(Journalled.LATER if step.drafts else step.reply)
        return replies
