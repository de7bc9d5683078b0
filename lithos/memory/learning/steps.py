"""The handlers for commands of the memory actor, which change `edges.db` and `stats.db`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum

from lithos.events.model.imported_rows import Carried
from lithos.kernel.values.errors import LithosError
from lithos.kernel.values.messages import Done, Handlers, carry_out
from lithos.memory.model.imported_tables import LEARNED, CarryLearned
from lithos.memory.model.memory import (
    ApplyFeedback,
    ClaimJobs,
    Enqueue,
    EnrichJob,
    FinishJobs,
    ForgetJobs,
    ForgetLessons,
    ForgetNotes,
    ForgetReceipts,
    LearningCommand,
    NodeStats,
    ProjectionOutcome,
    ProjectProvenance,
    RecordEntities,
    RecordRetrieval,
)
from lithos.memory.model.questions import (
    EmbedQuestions,
    ForgetQuestions,
    HalveQuestions,
    LoadQuestions,
    TrimQuestions,
)
from lithos.memory.model.salience import STRIKES, blame, cite, ignore, pairs_within
from lithos.memory.rows.edges import EdgeStore, wanted_edges
from lithos.memory.rows.stats import StatsStore
from lithos.notes.model.edges import (
    Edge,
    EdgeCommand,
    ResolveConflict,
    UpsertEdge,
    announce_edge,
    check_conflict,
)

MemoryCommand = EdgeCommand[object] | LearningCommand[object]


class MemoryDatabase(Enum):
    """The databases of the memory actor, in commit order."""

    EDGES = "edges"
    STATS = "statistics"


_EDGES = frozenset([MemoryDatabase.EDGES])
_STATS = frozenset([MemoryDatabase.STATS])
_BOTH = frozenset(MemoryDatabase)
_NONE: frozenset[MemoryDatabase] = frozenset()


class Steps:
    """Command handlers. They run in the transactions that `needs` returns."""

    def __init__(
        self,
        edges: EdgeStore,
        stats: StatsStore,
        questions_kept: int,
        new_edge_id: Callable[[], str],
    ) -> None:
        self._edges = edges
        self._stats = stats
        self._questions_kept = questions_kept
        self._new_edge_id = new_edge_id
        self._handlers: Handlers = {
            UpsertEdge: self._upsert,
            ResolveConflict: self._resolve,
            RecordRetrieval: self._record_retrieval,
            ApplyFeedback: self._apply_feedback,
            ForgetLessons: self._forget_lessons,
            ForgetJobs: self._forget_jobs,
            ProjectProvenance: self._project,
            CarryLearned: self._carry,
            ForgetReceipts: self._forget_receipts,
            ForgetNotes: self._forget_notes,
            Enqueue: self._enqueue,
            ClaimJobs: self._claim_jobs,
            FinishJobs: self._finish_jobs,
            RecordEntities: self._record_entities,
            ForgetQuestions: self._forget_questions,
            TrimQuestions: self._trim_questions,
            HalveQuestions: self._halve_questions,
            EmbedQuestions: self._embed_questions,
            LoadQuestions: self._load_questions,
        }

    def carry_out(self, command: MemoryCommand, now: datetime) -> Done[object]:
        """Change the databases. A reply that is a `LithosError` is a refusal that has changed nothing."""
        return carry_out(self._handlers, command, now)

    def needs(self, command: MemoryCommand) -> frozenset[MemoryDatabase]:
        """Return the databases that the command may write.

        A missing database is created only if there are new rows.
        """
        has_edges, has_stats = self._edges.is_there, self._stats.is_there
        if isinstance(command, EdgeCommand):
            return _EDGES
        if isinstance(command, ProjectProvenance):
            return _EDGES if has_edges or (wanted_edges(command.desired) and not command.dry_run) else _NONE
        if isinstance(command, ApplyFeedback):
            pairs = pairs_within(command.cited, command.namespaces)
            return _BOTH if pairs or (command.misleading and has_edges) else _STATS
        if isinstance(command, ForgetLessons):
            return _BOTH if has_edges else _STATS
        if isinstance(command, CarryLearned):
            is_edges = LEARNED[command.table].database == "edges.db"
            is_there = has_edges if is_edges else has_stats
            return _NONE if command.dry_run and not is_there else _EDGES if is_edges else _STATS
        if isinstance(command, RecordRetrieval | Enqueue | RecordEntities):
            return _STATS
        return _STATS if has_stats else _NONE

    # -- edges ---------------------------------------------------------------------------------

    def _upsert(self, command: UpsertEdge, now: datetime) -> Done[Edge]:
        edge = self._edges.upsert(command, self._new_edge_id(), now)
        return Done(edge, (announce_edge(edge, command.agent, uuid.uuid4().hex),))

    def _resolve(self, command: ResolveConflict, now: datetime) -> Done[Edge | LithosError]:
        try:
            edge = check_conflict(self._edges.edge(command.edge_id), command)
        except LithosError as refusal:
            return Done(refusal)
        edge = self._edges.settle_conflict(edge, command.resolution, command.resolver, now)
        return Done(edge, (announce_edge(edge, command.resolver, uuid.uuid4().hex),))

    def _project(self, command: ProjectProvenance, now: datetime) -> Done[ProjectionOutcome]:
        if not self._edges.is_there:
            return Done(ProjectionOutcome(created=len(wanted_edges(command.desired))))
        return Done(self._edges.learned.project(command, self._new_edge_id, now))

    def _carry(self, command: CarryLearned, now: datetime) -> Done[Carried]:
        if command.dry_run and not self.needs(command):
            return Done(Carried(created=len(command.rows)))  # The database does not exist yet.
        if LEARNED[command.table].database == "stats.db":
            return Done(self._stats.carry(command))
        carried, edges = self._edges.carry(command)
        events = (announce_edge(edge, command.agent, uuid.uuid4().hex) for edge in edges)
        return Done(carried, tuple(events))

    # -- retrieval and feedback ----------------------------------------------------------------

    def _record_retrieval(self, command: RecordRetrieval, now: datetime) -> Done[dict[str, NodeStats]]:
        tables = self._stats.writing
        before = tables.nodes.get(command.note_ids)
        tables.receipts.add(command.receipt)
        tables.nodes.count_retrieval(command.note_ids, now)
        return Done(before)

    def _apply_feedback(self, command: ApplyFeedback, now: datetime) -> Done[tuple[str, ...]]:
        before = self._load((*command.cited, *command.misleading, *command.ignored))
        stats = dict(before)
        if command.id is not None and not self._stats.writing.ledgers.note_lesson(command.id):
            return self._struck(command, before)  # both databases already have the lesson
        for node_id in command.cited:
            stats[node_id] = cite(stats[node_id], now)
        for node_id in command.misleading:
            stats[node_id] = blame(stats[node_id])
        for node_id in command.ignored:
            stats[node_id] = ignore(stats[node_id])
        self._stats.writing.nodes.put(stats.values())
        self._stats.writing.questions.apply(command, self._questions_kept, now)
        self._judge_edges(command, now)
        return self._struck(command, stats)

    def _judge_edges(self, command: ApplyFeedback, now: datetime) -> None:
        pairs = pairs_within(command.cited, command.namespaces)
        if not pairs and not (command.misleading and self._edges.is_there):
            return
        if command.id is not None and not self._edges.learned.note_lesson(command.id):
            return  # The process ended before the commit of the statistics.
        if pairs:
            self._edges.learned.reinforce(pairs, self._new_edge_id, now)
        if command.misleading:
            self._edges.learned.weaken_touching(command.misleading, now)

    @staticmethod
    def _struck(command: ApplyFeedback, stats: Mapping[str, NodeStats]) -> Done[tuple[str, ...]]:
        """Return the misleading notes that have reached the limit for quarantine."""
        return Done(tuple(one for one in command.misleading if stats[one].misleading_count >= STRIKES))

    def _forget_lessons(self, command: ForgetLessons, now: datetime) -> Done[None]:
        if self._edges.is_there:
            self._edges.learned.forget_lessons(command.ids)
        self._stats.writing.ledgers.forget_lessons(command.ids)
        return Done(None)

    def _load(self, node_ids: tuple[str, ...]) -> dict[str, NodeStats]:
        """Return the statistics of these notes. Notes without stored statistics get initial values."""
        stored = self._stats.writing.nodes.get(node_ids)
        return {node_id: stored.get(node_id) or NodeStats(node_id=node_id) for node_id in node_ids}

    # -- queue and retention ---------------------------------------------------------------------

    def _forget_receipts(self, command: ForgetReceipts, now: datetime) -> Done[int]:
        return Done(self._stats.writing.receipts.drop(command.ids))

    def _forget_jobs(self, command: ForgetJobs, now: datetime) -> Done[int]:
        queue = self._stats.writing.queue
        queue.drop_processed(command.done_before)
        return Done(queue.drop_given_up(command.queued_before, command.most))

    def _forget_notes(self, command: ForgetNotes, now: datetime) -> Done[int]:
        return Done(self._stats.writing.ledgers.drop_notes(command.ids))

    def _enqueue(self, command: Enqueue, now: datetime) -> Done[None]:
        self._stats.writing.queue.add(command.triggers, now)
        return Done(None)

    def _claim_jobs(self, command: ClaimJobs, now: datetime) -> Done[list[EnrichJob]]:
        return Done(self._stats.writing.queue.claim(command.max_attempts, command.after, command.most))

    def _finish_jobs(self, command: FinishJobs, now: datetime) -> Done[None]:
        if command.done:
            self._stats.writing.queue.finish(command.rows, now)
        return Done(None)

    def _record_entities(self, command: RecordEntities, now: datetime) -> Done[None]:
        self._stats.writing.ledgers.keep_entities(command.node_id, command.found, command.written)
        return Done(None)

    # -- remembered questions without feedback ----------------------------------------------------

    def _forget_questions(self, command: ForgetQuestions, now: datetime) -> Done[int]:
        return Done(self._stats.writing.questions.forget(command.wanted))

    def _trim_questions(self, command: TrimQuestions, now: datetime) -> Done[int]:
        return Done(self._stats.writing.questions.trim(self._questions_kept))

    def _halve_questions(self, command: HalveQuestions, now: datetime) -> Done[int]:
        return Done(self._stats.writing.questions.halve(command.note_id, command.old, command.new))

    def _embed_questions(self, command: EmbedQuestions, now: datetime) -> Done[None]:
        self._stats.writing.questions.embed(command.embedder, command.codes)
        return Done(None)

    def _load_questions(self, command: LoadQuestions, now: datetime) -> Done[int | None]:
        matrix = self._stats.remembered
        if not command.after:
            matrix.begin(command.embedder, command.dims)
        if matrix.embedder != command.embedder:
            return Done(None)  # The vectors of another embedder are being loaded.
        last = self._stats.writing.questions.load(matrix, command.after, command.most)
        if last is None:
            matrix.finish()
        return Done(last)
