"""The coordinator, which owns `coordination.db` and therefore determines the order of all events.

All queued messages are committed in one transaction (group commit). Durable commands (events, registrations,
task commands) are acknowledged after their commit. Last-seen times and access rows are buffered in memory and
written with the next commit (write-behind), because losing the last second of them is acceptable.
"""

from __future__ import annotations

from collections import ChainMap, Counter, deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from functools import partial
from time import perf_counter

import attrs
import trio

from lithos.events.journal.agent_changes import archive, register, seen
from lithos.events.journal.boards import Boards
from lithos.events.journal.broadcaster import Broadcaster
from lithos.events.journal.commits import PRUNE_EVERY, Batch, Commits
from lithos.events.journal.messages import (
    AppendEvents,
    ArchiveAgent,
    CoordinatorMailbox,
    CoordinatorMessage,
    Flush,
    Journalled,
    PreparedMessage,
    RegisterAgent,
)
from lithos.events.model.agents import READ, Agent, AuditRow, size_of
from lithos.events.model.imported_rows import Carried
from lithos.events.model.ports import ExtraRows
from lithos.events.model.retention import DropAgents, DropTold, ForgetReads
from lithos.events.model.told_projects import ToldSessions
from lithos.events.rows.store import CoordinationStore
from lithos.events.rows.told_projects import ToldRows
from lithos.kernel.actors.mailboxes import Inbox, Mailbox, run_batches
from lithos.kernel.actors.threads import Blocking
from lithos.kernel.databases.database import DatabaseLost
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import StorageFailed
from lithos.kernel.values.events import Event, EventDraft

log = get_logger("lithos.coordinator")

#: Maximum number of queued messages. It suffices for all writers and registrations at once. Further callers
#: wait.
CAPACITY = 256
BATCH = 256
#: Maximum seconds for which access rows and last-seen times are buffered. The durability promise allows this
#: delay.
LAZY_DELAY = 0.5
#: Maximum number of access rows to keep while the database refuses writes. If there are more, the oldest rows
#: are lost and counted.
AUDIT_BACKLOG = 100_000
#: Maximum seconds to wait for the commit of a version.
RECORDS_DEADLINE = 60.0
#: Number of characters of new events and registrations after which the retention runs early.
GROWTH = 32 * 1024 * 1024


class Coordinator:
    """State of the coordinator, and the processing of its batches."""

    def __init__(
        self,
        store: CoordinationStore,
        boards: Boards,
        blocking: Blocking,
        broadcaster: Broadcaster,
        clock: Callable[[], datetime],
        *,
        journal_size: int,
        on_commit: Callable[[Sequence[Event], float], None] | None = None,
        records: ExtraRows | None = None,
    ) -> None:
        self.mailbox: CoordinatorMailbox = Mailbox("coordinator", CAPACITY)
        self._store = store
        self._blocking = blocking
        self._broadcaster = broadcaster
        self._clock = clock
        #: Called after every commit with the committed events and the duration in seconds.
        self._on_commit = on_commit
        self._boards = boards
        #: Time of the last clock check. If the clock was set back since, timed changes are checked at once.
        self._looked = clock()
        self._due = self._boards.next_due(self._looked)
        self._commit = Commits(store, self._boards, journal_size).commit
        self._since_prune = PRUNE_EVERY  # A server may restart often, so prune soon after each start.
        self._next_seq = store.next_seq()
        broadcaster.head = store.head()
        self.agents: dict[str, Agent] = {agent.id: agent for agent in store.agents()}
        self._reads: Counter[str] = Counter(store.read_counts())
        self._touched: set[str] = set()
        self._audit: deque[AuditRow] = deque(maxlen=AUDIT_BACKLOG)
        #: The projects that hooks named. They are stored like last-seen times.
        self.told = ToldSessions(store.rows(ToldRows).all())
        #: Events of stored changes. They wait here while the journal cannot be written.
        self._unwritten: list[EventDraft] = []
        #: Rows of another package, which are committed together with all other changes.
        self._records = records if records is not None else ExtraRows()
        self._records.commit = self._commit_records
        #: Reason why the last commit failed, or None if it succeeded.
        self.failure: str | None = None
        self._has_grown = trio.Event()
        self._growth = 0

    @property
    def head(self) -> int:
        """The seq of the newest event. If there are no events, the position before the first event.

        The seq of the next event may be far higher.
        """
        return self._broadcaster.head

    @property
    def unwritten_origins(self) -> frozenset[str]:
        """The origins of events that wait until the journal can be written."""
        return frozenset(draft.origin for draft in self._unwritten)

    def touch(self, agent_id: str) -> None:
        """Record that an agent was active now. An unknown agent is added, an archived agent comes back."""
        now = self._clock()
        self.agents[agent_id] = seen(agent_id, self.agents.get(agent_id), now)
        self._touched.add(agent_id)

    def record_access(self, rows: Sequence[AuditRow]) -> None:
        """Buffer accesses. They are stored within half a second."""
        if len(self._audit) + len(rows) > AUDIT_BACKLOG:
            log.warning(
                "access rows lost",
                rows=len(rows),
                reason="the database has refused these rows for a long time",
            )
        self._audit.extend(rows)
        self._reads.update(row.doc_id for row in rows if row.operation == READ)

    @property
    def has_grown(self) -> trio.Event:
        """Event that is set when many changes were stored, so that the retention runs early."""
        return self._has_grown

    def reads(self) -> Collection[str]:
        """Return the ids of all notes that were read at least once."""
        return self._reads.keys()

    def reads_of(self, note_id: str) -> int:
        """Return how often a note was read."""
        return self._reads[note_id]

    async def start(self, inbox: Inbox[CoordinatorMessage], *, task_status: trio.TaskStatus[None]) -> None:
        """Process messages until the mailbox closes, then commit pending changes."""
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._tick)
            await run_batches(inbox, self._flush, size=BATCH, stats=self.mailbox.stats)
            nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 10.0):
            await self._flush([])

    async def _tick(self) -> None:
        while True:
            self._nudge_when_due()
            await trio.sleep(LAZY_DELAY)
            if self._touched or self._audit or self._unwritten or self._has_more:
                self.mailbox.nudge(Flush())

    @property
    def _has_more(self) -> bool:
        return self._records.has_unsaved or self.told.has_unsaved

    def _nudge_when_due(self) -> None:
        """Request a commit if a timed change is due.

        The clock is polled because it may be set forward or back at any time.
        """
        now = self._clock()
        if now < self._looked:
            self._due = now
        self._looked = now
        if self._due is not None and self._due <= now:
            self.mailbox.nudge(Flush())

    async def _commit_records(self) -> Callable[[], Awaitable[object]]:
        deadline = trio.current_time() + RECORDS_DEADLINE
        with trio.fail_at(deadline):
            envelope = await self.mailbox.post(Flush())

        async def committed() -> None:
            with trio.fail_at(deadline):
                await envelope.reply()

        return committed

    async def _flush(self, messages: Sequence[CoordinatorMessage]) -> list[object]:
        new_agents: dict[str, Agent] = {}
        steps = [self._work_out(message, new_agents) for message in messages]
        touched, self._touched = self._touched, set()
        agents = [*(self.agents[agent_id] for agent_id in touched), *new_agents.values()]
        audit, self._audit = self._audit, deque(maxlen=AUDIT_BACKLOG)
        records, told = self._records.take_unsaved(), self.told.take_unsaved()
        batch = Batch(
            steps=steps,
            agents=agents,
            audit=audit,
            records=records,
            told=told,
            unwritten=tuple(self._unwritten),
            next_seq=self._next_seq,
            head=self.head,
            since_prune=self._since_prune,
            now=self._clock(),
            due=self._due,
        )
        began = perf_counter()
        try:
            committed = await self._blocking.run(partial(self._commit, batch))
        except (DatabaseFailed, OSError) as failure:
            self._records.put_back(records)
            self.told.put_back(told)
            self._touched |= touched
            self._audit = deque([*audit, *self._audit], maxlen=AUDIT_BACKLOG)
            return self._keep_for_later(steps, failure)
        if self.failure is not None:
            log.info("coordination database accepts writes again", events=len(committed.events))
        self.failure = None
        self._records.saved(records)
        self._unwritten.clear()
        self._since_prune = committed.since_prune
        self._due = committed.due
        if committed.due != batch.due:
            self._nudge_when_due()  # If many changes are due, one commit makes only some of them.
        for agent in new_agents.values():
            self._enter(agent)
        grown = sum(map(size_of, new_agents.values()))
        if committed.events:
            self._next_seq = committed.events[-1].seq + 1
            grown += self._broadcaster.publish(committed.events)
            if self._on_commit is not None:
                self._on_commit(committed.events, perf_counter() - began)
        self._boards.committed()
        self._forget_dropped(steps)
        for reply in committed.replies:
            if isinstance(reply, Carried):
                self._take_over(reply)
        self._note_growth(grown)
        return committed.replies

    def _forget_dropped(self, steps: Sequence[PreparedMessage]) -> None:
        """Forget agents, read counts and sessions that the retention deleted.

        Agents that were seen meanwhile are kept.
        """
        for step in steps:
            if isinstance(step.message, DropAgents):
                for agent in step.message.agents:
                    known = self.agents.get(agent.id)
                    if known is not None and known.last_seen_at <= agent.last_seen_at:
                        del self.agents[agent.id]
            elif isinstance(step.message, ForgetReads):
                for note_id in step.message.note_ids:
                    self._reads.pop(note_id, None)
            elif isinstance(step.message, DropTold):
                self.told.forget(step.message.before)

    def _note_growth(self, size: int) -> None:
        self._growth += size
        if self._growth >= GROWTH:
            self._growth = 0
            self._has_grown.set()
            self._has_grown = trio.Event()

    def _work_out(self, message: CoordinatorMessage, new_agents: dict[str, Agent]) -> PreparedMessage:
        if isinstance(message, AppendEvents):
            return PreparedMessage(message, message.drafts)
        if isinstance(message, RegisterAgent | ArchiveAgent):
            return self._change_agent(message, new_agents)
        return PreparedMessage(message)

    def _change_agent(
        self, message: RegisterAgent | ArchiveAgent, new_agents: dict[str, Agent]
    ) -> PreparedMessage:
        known = new_agents.get(message.id) or self.agents.get(message.id)
        if isinstance(message, ArchiveAgent):
            prepared = archive(message, known, self._clock())
        else:
            prepared = register(message, known, ChainMap(new_agents, self.agents).values(), self._clock())
        if prepared.agent is not None:
            new_agents[message.id] = prepared.agent
        return prepared

    def _enter(self, agent: Agent) -> None:
        """Remember a registered or archived agent.

        If the agent was active during the commit, the newer time is kept, and the agent is not archived.
        """
        known = self.agents.get(agent.id)
        last_seen = max(agent.last_seen_at, known.last_seen_at) if known else agent.last_seen_at
        archived = None if agent.id in self._touched else agent.archived_at
        self.agents[agent.id] = attrs.evolve(agent, last_seen_at=last_seen, archived_at=archived)

    def _take_over(self, carried: Carried) -> None:
        """Remember imported agents and reads. An agent may have been active during the import."""
        for agent in carried.agents:
            self._enter(agent)
        self._reads.update(carried.reads)

    def _keep_for_later(self, steps: Sequence[PreparedMessage], failure: Exception) -> list[object]:
        """Refuse the changes that could not be stored.

        Events of changes that are already stored are kept in memory, so that no later event overtakes them.
        """
        if self.failure is None:
            log.error("coordination database refuses writes", reason=str(failure))
        self.failure = str(failure)
        hint = "Nothing was changed"
        if not isinstance(failure, DatabaseLost):
            hint += "; retry when the disk has free space and is writable"
        replies: list[object] = []
        for step in steps:
            if step.must_be_stored:
                replies.append(StorageFailed(f"The change could not be stored: {failure}. {hint}."))
            else:
                self._unwritten.extend(step.drafts)
                replies.append(Journalled.LATER if step.drafts else step.reply)
        return replies
