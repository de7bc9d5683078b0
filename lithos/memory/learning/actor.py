"""The memory actor. It owns `edges.db` and `stats.db`, and journals each edge change exactly once (outbox).

A batch of commands is one transaction per database, and a failed command affects no other command. The edge
transaction also stores the event of each change in an outbox. Then the coordinator journals the events, the
outbox is cleared, and the callers get their replies. If the process ends in between, the outbox remains, and
the next start continues from it. Each event has a unique origin, so the journal never appends an event twice.

The edges are committed before the statistics. If one database refuses, only the commands that need this
database are refused. If the process ends between the two commits, a command for both databases has changed
only the edges, and its caller gets no reply. Each such command is idempotent:

* `ApplyFeedback` is also repeated, because its lesson stays in `coordination.db` until then. The ledgers of
  both databases recognise the repetition.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime

import attrs
import trio
from attrs import frozen

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import AppendEvents, Flush, Journalled
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.mailboxes import ActorDown, Inbox, Mailbox, ShuttingDown, run_batches
from lithos.kernel.actors.threads import Blocking
from lithos.kernel.databases.database import LearningDatabase
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import LithosError, StorageFailed, UpdateFailed
from lithos.kernel.values.events import EDGE_UPSERTED, EventDraft
from lithos.kernel.values.messages import Command, Done
from lithos.memory.learning.steps import MemoryCommand, MemoryDatabase, Steps
from lithos.memory.model.memory import ForgetNotes, LearningCommand, RecordEntities
from lithos.memory.rows.edges import EdgeStore
from lithos.memory.rows.stats import StatsStore
from lithos.notes.catalogue.note_records import KeptEntities
from lithos.notes.catalogue.relations import CountedEdges, Relations
from lithos.notes.model.edges import Edge, EdgeCommand, ResolveConflict
from lithos.notes.model.entities import ExtractedEntities

log = get_logger("lithos.memory")

#: Errors that a statement raises for a value that cannot be stored in any column.
_UNFIT = (UnicodeError, OverflowError)


class _StoreFailed(Exception):
    """Error for a failed write to a database. All uncommitted changes are undone."""

    def __init__(self, store: MemoryDatabase, reason: Exception) -> None:
        super().__init__(str(reason))
        self.store = store


@attrs.define(eq=False)
class _Job:
    """A command of a batch. It is `settled` when its outcome is final."""

    command: MemoryCommand
    needs: frozenset[MemoryDatabase] = frozenset()
    done: Done[object] = Done(None)
    settled: bool = False

    def refuse(self, reason: Exception) -> None:
        """Settle the job with a refusal."""
        self.done, self.settled = Done(_refusal(self.command, reason)), True


class Batches:
    """The executor of batches. It runs in the only thread that writes to both databases."""

    def __init__(self, edges: EdgeStore, stats: StatsStore, steps: Steps) -> None:
        self._edges = edges
        self._stats = stats
        self._steps = steps

    def commit(self, commands: Sequence[MemoryCommand], now: datetime) -> list[Done[object]]:
        """Return the result of each command. A reply that is a `LithosError` is a refusal."""
        jobs = [self._plan(command) for command in commands]
        while waiting := [job for job in jobs if not job.settled]:
            try:
                self._run(waiting, now)
            except _StoreFailed as failure:
                log.error("memory database not written", store=failure.store.value, reason=str(failure))
                for job in waiting:
                    if failure.store in job.needs and not job.settled:
                        job.refuse(failure)
        self._stats.publish()  # The stored state is published even if changes were undone.
        return [job.done for job in jobs]

    def _plan(self, command: MemoryCommand) -> _Job:
        job = _Job(command)
        try:
            job.needs = self._steps.needs(command)
        except DatabaseFailed as failure:
            job.refuse(failure)
        return job

    def _run(self, jobs: Sequence[_Job], now: datetime) -> None:
        needed = {store for job in jobs for store in job.needs}
        with self._transaction(MemoryDatabase.STATS, needed):
            with self._transaction(MemoryDatabase.EDGES, needed):
                for job in jobs:
                    self._carry_out(job, now)
            for job in jobs:
                job.settled = MemoryDatabase.STATS not in job.needs
        for job in jobs:
            job.settled = True

    @contextmanager
    def _transaction(self, store: MemoryDatabase, needed: set[MemoryDatabase]) -> Iterator[None]:
        if store not in needed:
            yield
            return
        try:
            with self._store(store).transaction():
                yield
        except (DatabaseFailed, OSError) as failure:
            raise _StoreFailed(store, failure) from failure

    def _carry_out(self, job: _Job, now: datetime) -> None:
        """Run one command in its own savepoint, so that its failure affects no other command."""
        try:
            with ExitStack() as parts:
                for store in job.needs:
                    parts.enter_context(self._store(store).part())
                job.done = self._steps.carry_out(job.command, now)
                if job.done.events:
                    self._edges.add_to_outbox(job.done.events)
        except (DatabaseFailed, *_UNFIT) as failure:
            for store in job.needs:
                if not self._store(store).is_in_transaction:
                    raise _StoreFailed(store, failure) from failure
            log.error("command not stored", command=type(job.command).__name__, reason=repr(failure))
            job.done = Done(_refusal(job.command, failure))

    def _store(self, store: MemoryDatabase) -> EdgeStore | StatsStore:
        return self._edges if store is MemoryDatabase.EDGES else self._stats


def _refusal(command: MemoryCommand, reason: Exception) -> LithosError:
    """Return the error for the caller of a command that could not be stored."""
    if not isinstance(command, EdgeCommand):
        return StorageFailed(
            f"The feedback could not be stored: {reason}. Retry when the disk has space and is writable."
        )
    text = (
        f"The edge could not be stored: {reason}. Nothing was changed. Retry when the disk has "
        "space and is writable."
    )
    return UpdateFailed(text) if isinstance(command, ResolveConflict) else StorageFailed(text)


#: Size of the mailbox. It is enough for a few dozen agents at once, and further callers wait in their own
#: tasks.
CAPACITY = 64
BATCH = 64
#: Seconds between two attempts to journal waiting events.
RETRY_DELAY = 1.0
#: Seconds that a caller waits for the journal. The change is already stored, and its event follows later.
JOURNAL_DEADLINE = 20.0


@frozen
class Deliver(Command[None]):
    """Retry to journal the events in the outbox."""


@frozen
class TryWriting(Command[None]):
    """Check whether a database that refused a write accepts writes again."""


MemoryMessage = MemoryCommand | Deliver | TryWriting
MemoryMailbox = Mailbox[MemoryMessage]
#: The changed edges, or all edges that count for trust. None if the edges could not be read.
_Changed = Sequence[Edge] | CountedEdges | None


def make_edge_id() -> str:
    """Return a new edge id: `edge_` and 12 hexadecimal digits."""
    return f"edge_{uuid.uuid4().hex[:12]}"


@attrs.define(eq=False, slots=False)
class Memory:
    """The state and the batches of the memory actor."""

    _store: EdgeStore
    _stats: StatsStore
    _blocking: Blocking
    _coordinator: Coordinator
    _journal: CoordinationStore
    _journal_reading: Blocking
    _clock: Callable[[], datetime]
    #: Maximum number of remembered questions with cited notes.
    _questions_kept: int = attrs.field(default=100_000, kw_only=True)
    _new_edge_id: Callable[[], str] = attrs.field(default=make_edge_id, kw_only=True)
    #: Typed edges that count for trust. They are updated before the caller of a change gets its reply.
    _relations: Relations = attrs.field(factory=Relations, kw_only=True)
    #: Entities in notes. They are also updated before the caller of a change gets its reply.
    _entities: KeptEntities = attrs.field(factory=KeptEntities, kw_only=True)
    mailbox: MemoryMailbox = attrs.field(factory=lambda: Mailbox("memory", CAPACITY), init=False)
    #: If True, the relations may differ from the stored edges, so they must be read again.
    _is_mirror_doubtful: bool = attrs.field(default=True, init=False)
    #: Events in the outbox, in order.
    _undelivered: list[EventDraft] = attrs.field(factory=list, init=False)
    #: If True, the journal or the coordinator may already have some of these events.
    _is_uncertain: bool = attrs.field(default=True, init=False)

    def __attrs_post_init__(self) -> None:
        steps = Steps(self._store, self._stats, self._questions_kept, self._new_edge_id)
        self._batches = Batches(self._store, self._stats, steps)

    @property
    def databases(self) -> tuple[LearningDatabase, ...]:
        """Return the databases of the actor. Any caller may read their `failure` and `damage`."""
        return (self._store, self._stats)

    async def start(self, inbox: Inbox[MemoryMessage], *, task_status: trio.TaskStatus[None]) -> None:
        """Journal the events of an earlier run. Then serve commands until the mailbox is closed."""
        self._is_mirror_doubtful = True
        self._mirror(await self._blocking.run(lambda: self._look(())))
        self._entities.load(await self._blocking.run(self._read_entities))
        self._undelivered = await self._blocking.run(self._store.outbox)
        self._is_uncertain = True
        await self._deliver()
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._try_again)
            await run_batches(inbox, self._flush, size=BATCH, stats=self.mailbox.stats)
            nursery.cancel_scope.cancel()

    async def _try_again(self) -> None:
        while True:
            await trio.sleep(RETRY_DELAY)
            if self._undelivered:
                self.mailbox.nudge(Deliver())
            if any(store.failure for store in self.databases):
                self.mailbox.nudge(TryWriting())

    async def _flush(self, messages: Sequence[MemoryMessage]) -> list[object]:
        done, changed = await self._blocking.run(lambda: self._commit_and_look(messages))
        self._mirror(changed)
        for message, each in zip(messages, done, strict=True):
            if not isinstance(each.reply, LithosError):
                self._mirror_entities(message)
        events = [event for each in done for event in each.events]
        self._undelivered += events
        if events or any(isinstance(message, Deliver) for message in messages):
            await self._deliver()  # Data that was learned does not wait for the journal.
        return [each.reply for each in done]

    # -- edge mirror ---------------------------------------------------------------------------

    def _commit_and_look(self, messages: Sequence[MemoryMessage]) -> tuple[list[Done[object]], _Changed]:
        done = self._commit(messages)
        return done, self._look(done)

    def _look(self, done: Sequence[Done[object]]) -> _Changed:
        """Return the stored state of the changed edges.

        If the changes are uncertain, return all edges. Blocks.

        A refused command may have stored its edges, because a batch commits edges before statistics.
        """
        if any(isinstance(each.reply, StorageFailed | UpdateFailed) for each in done):
            self._is_mirror_doubtful = True
        try:
            if self._is_mirror_doubtful:
                return CountedEdges(self._store.trust_edges())
            ids = [str(event.payload["edge_id"]) for each in done for event in each.events]
            return [edge for edge_id in ids if (edge := self._store.edge(edge_id)) is not None]
        except (DatabaseFailed, OSError) as failure:
            log.error("typed edges not read; some warnings may be missing", reason=str(failure))
            return None

    def _mirror(self, changed: _Changed) -> None:
        """Pass the changed edges to the relations. None means that the next batch reads all edges again."""
        self._is_mirror_doubtful = changed is None
        if isinstance(changed, CountedEdges):
            self._relations.load_edges(changed)
        else:
            for edge in changed or ():
                self._relations.put_edge(edge)

    def _read_entities(self) -> Mapping[str, ExtractedEntities]:
        """Return the stored entities of notes. Blocks."""
        try:
            with self._stats.noticing_damage():
                return self._stats.reading.ledgers.entities()
        except DatabaseFailed as failure:
            log.error("entities not read; they return as notes change", reason=str(failure))
            return {}

    def _mirror_entities(self, message: MemoryMessage) -> None:
        if isinstance(message, RecordEntities):
            self._entities.put(message.node_id, message.found)
        elif isinstance(message, ForgetNotes):
            for note_id in message.ids:
                self._entities.put(note_id, None)

    def _commit(self, messages: Sequence[MemoryMessage]) -> list[Done[object]]:
        """Commit a batch with one transaction per database. A refused command has written nothing."""
        commands = [message for message in messages if isinstance(message, EdgeCommand | LearningCommand)]
        done = iter(self._batches.commit(commands, self._clock()) if commands else ())
        for store in self.databases:
            if store.failure and TryWriting() in messages:
                with suppress(DatabaseFailed, OSError):  # The database records its own failure.
                    store.try_writing()
        return [
            next(done) if isinstance(message, EdgeCommand | LearningCommand) else Done(None)
            for message in messages
        ]

    # -- outbox --------------------------------------------------------------------------------

    async def _deliver(self) -> None:
        """Journal the waiting events in order. If an event fails, it stays in the outbox and is retried."""
        if not self._undelivered:
            return
        try:
            with trio.fail_after(JOURNAL_DEADLINE):
                unsent = await self._take_unsent()
                self._is_uncertain = True  # The outcome is uncertain until the coordinator answers.
                answer = await self._coordinator.mailbox.ask(AppendEvents(tuple(unsent))) if unsent else None
                if answer is Journalled.LATER or len(unsent) < len(self._undelivered):
                    return
                await self._forget({draft.origin for draft in unsent})
                self._is_uncertain = False
        except (ShuttingDown, ActorDown, trio.TooSlowError, DatabaseFailed, OSError) as failure:
            log.warning(
                "edge events wait for the journal", events=len(self._undelivered), reason=repr(failure)
            )

    async def _take_unsent(self) -> list[EventDraft]:
        """Return the waiting events that the coordinator does not have.

        Journalled events are deleted from the outbox.
        """
        if not self._is_uncertain:
            return list(self._undelivered)
        # The coordinator answers after all earlier messages. By then, each earlier event was journalled, kept
        # or lost.
        await self._coordinator.mailbox.ask(Flush())
        kept = self._coordinator.unwritten_origins
        origins = {draft.origin for draft in self._undelivered}
        journalled = await self._journal_reading.run(lambda: self._journal.journalled(EDGE_UPSERTED, origins))
        await self._forget(journalled)
        return [draft for draft in self._undelivered if draft.origin not in kept]

    async def _forget(self, origins: set[str]) -> None:
        if origins:
            await self._blocking.run(lambda: self._clear_outbox(origins))
        self._undelivered = [draft for draft in self._undelivered if draft.origin not in origins]

    def _clear_outbox(self, origins: set[str]) -> None:
        with self._store.transaction():
            self._store.clear_outbox(origins)
