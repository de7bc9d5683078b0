"""The handler of each command of the memory actor: what it changes in `edges.db` and `stats.db`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum

import attrs

from lithos.core.commands import Done, Handlers, carry_out
from lithos.core.errors import LithosError
from lithos.core.importing import TABLES, Carried, CarryLearned
from lithos.core.learning.edges import (
    Edge,
    EdgeCommand,
    ResolveConflict,
    UpsertEdge,
    announce_edge,
    check_conflict,
)
from lithos.core.learning.memory import (
    ApplyFeedback,
    ClaimJobs,
    Consolidate,
    CountPairs,
    Decay,
    Enqueue,
    EnrichJob,
    FinishJobs,
    ForgetLedgers,
    ForgetLessons,
    ForgetNotes,
    ForgetPairs,
    ForgetReceipts,
    ForgetWorkingMemory,
    LearningCommand,
    NodeStats,
    PairsForgotten,
    ProjectionOutcome,
    ProjectProvenance,
    RecordEntities,
    RecordRetrieval,
)
from lithos.core.learning.questions import (
    EmbedQuestions,
    ForgetQuestions,
    HalveQuestions,
    LoadQuestions,
    TrimQuestions,
)
from lithos.core.learning.salience import (
    STRIKES,
    LearningSettings,
    blame,
    cite,
    clamp,
    decay,
    ignore,
    pairs_together,
    pairs_within,
)
from lithos.stores.learning.edges import CITED_WEIGHT, REINFORCEMENT, EdgeStore, wanted_edges
from lithos.stores.learning.stats import StatsStore

#: Working memory counts from this activation on when a task is consolidated.
_USED_AGAIN = 2

MemoryCommand = EdgeCommand[object] | LearningCommand[object]


class Store(Enum):
    """The databases of the memory actor, in the order of their commits."""

    EDGES = "edges"
    STATS = "statistics"


_EDGES = frozenset([Store.EDGES])
_STATS = frozenset([Store.STATS])
_BOTH = frozenset(Store)
_NONE: frozenset[Store] = frozenset()


class Steps:
    """The commands, carried out inside the transactions that `needs` names."""

    def __init__(
        self,
        edges: EdgeStore,
        stats: StatsStore,
        settings: LearningSettings,
        new_edge_id: Callable[[], str],
    ) -> None:
        self._edges = edges
        self._stats = stats
        self._settings = settings
        self._new_edge_id = new_edge_id
        self._handlers: Handlers = {
            UpsertEdge: self._upsert,
            ResolveConflict: self._resolve,
            RecordRetrieval: self._record_retrieval,
            CountPairs: self._count_pairs,
            ApplyFeedback: self._apply_feedback,
            ForgetLessons: self._forget_lessons,
            ForgetLedgers: self._forget_ledgers,
            Decay: self._decay,
            Consolidate: self._consolidate,
            ProjectProvenance: self._project,
            CarryLearned: self._carry,
            ForgetWorkingMemory: self._forget_working,
            ForgetReceipts: self._forget_receipts,
            ForgetPairs: self._forget_pairs,
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
        """Change the databases; a `LithosError` as reply is a refusal that has changed nothing."""
        return carry_out(self._handlers, command, now)

    def needs(self, command: MemoryCommand) -> frozenset[Store]:
        """The databases that the command may write; a missing one is made only for something to keep."""
        has_edges, has_stats = self._edges.is_there, self._stats.is_there
        if isinstance(command, EdgeCommand):
            return _EDGES
        if isinstance(command, ProjectProvenance):
            return _EDGES if has_edges or (wanted_edges(command.desired) and not command.dry_run) else _NONE
        if isinstance(command, ApplyFeedback):
            pairs = pairs_within(command.cited, command.namespaces)
            return _BOTH if pairs or (command.misleading and has_edges) else _STATS
        if isinstance(command, Consolidate):
            return _BOTH if self._shared_pairs(command) else _STATS
        if isinstance(command, ForgetLessons):
            return _BOTH if has_edges else _STATS
        if isinstance(command, ForgetLedgers) and has_stats:
            return _BOTH if has_edges else _STATS
        if isinstance(command, CarryLearned):
            is_edges = TABLES[command.table].database == "edges.db"
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
            return Done(Carried(created=len(command.rows)))  # there is no database yet
        if TABLES[command.table].database == "stats.db":
            return Done(self._stats.carry(command))
        carried, edges = self._edges.carry(command)
        events = (announce_edge(edge, command.agent, uuid.uuid4().hex) for edge in edges)
        return Done(carried, tuple(events))

    # -- retrieval and feedback ----------------------------------------------------------------

    def _record_retrieval(self, command: RecordRetrieval, now: datetime) -> Done[dict[str, NodeStats]]:
        tables, receipt, returned = self._stats.writing, command.receipt, command.namespaces
        before = tables.nodes.get(returned)
        tables.receipts.add(receipt)
        if receipt.task_id is not None:
            tables.receipts.activate(receipt.task_id, returned, receipt.id, now)
        tables.nodes.count_retrieval(returned, now)
        if not command.defers_pairs:
            tables.nodes.count_pairs(dict.fromkeys(pairs_together(returned), 1), now)
        return Done(before)

    def _count_pairs(self, command: CountPairs, now: datetime) -> Done[None]:
        self._stats.writing.nodes.count_pairs(command.counts, now)
        return Done(None)

    def _apply_feedback(self, command: ApplyFeedback, now: datetime) -> Done[tuple[str, ...]]:
        before = self._load((*command.cited, *command.misleading, *command.ignored))
        stats = dict(before)
        if command.id is not None and not self._stats.writing.ledgers.note_lesson(command.id):
            return self._struck(command, before)  # the edges were committed first: all is done
        for node_id in command.cited:
            stats[node_id] = cite(stats[node_id], now, self._settings)
        for node_id in command.misleading:
            stats[node_id] = blame(stats[node_id], self._settings)
        for node_id in command.ignored:
            stats[node_id] = ignore(stats[node_id], self._settings)
        self._stats.writing.nodes.put(stats.values())
        self._stats.writing.questions.apply(command, self._settings.questions_kept, now)
        self._judge_edges(command, now)
        moved = sum(before[node_id].salience != new.salience for node_id, new in stats.items())
        return attrs.evolve(self._struck(command, stats), moved=moved)

    def _judge_edges(self, command: ApplyFeedback, now: datetime) -> None:
        pairs = pairs_within(command.cited, command.namespaces)
        if not pairs and not (command.misleading and self._edges.is_there):
            return
        if command.id is not None and not self._edges.learned.note_lesson(command.id):
            return  # the process ended before the statistics were committed
        if pairs:
            self._edges.learned.reinforce(pairs, CITED_WEIGHT, "reinforcement", self._new_edge_id, now)
        if command.misleading:
            self._edges.learned.weaken_touching(command.misleading, now)

    @staticmethod
    def _struck(command: ApplyFeedback, stats: Mapping[str, NodeStats]) -> Done[tuple[str, ...]]:
        """The notes that misled once too often."""
        return Done(tuple(one for one in command.misleading if stats[one].misleading_count >= STRIKES))

    def _forget_ledgers(self, command: ForgetLedgers, now: datetime) -> Done[int]:
        if not self._stats.is_there:
            return Done(0)
        ledgers, queue = self._stats.writing.ledgers, self._stats.writing.queue
        tasks = ledgers.drop_consolidations(command.before, command.most)
        if tasks and self._edges.is_there:
            self._edges.learned.forget_consolidated(tasks)
        dropped = len(tasks) + queue.drop_given_up(command.before, command.most)
        return Done(dropped)

    def _forget_lessons(self, command: ForgetLessons, now: datetime) -> Done[None]:
        if self._edges.is_there:
            self._edges.learned.forget_lessons(command.ids)
        self._stats.writing.ledgers.forget_lessons(command.ids)
        return Done(None)

    def _load(self, node_ids: tuple[str, ...]) -> dict[str, NodeStats]:
        """Stored or initial statistics of these notes."""
        stored = self._stats.writing.nodes.get(node_ids)
        return {node_id: stored.get(node_id) or NodeStats(node_id=node_id) for node_id in node_ids}

    # -- enrichment ----------------------------------------------------------------------------

    def _decay(self, command: Decay, now: datetime) -> Done[int]:
        nodes, ids = self._stats.writing.nodes, command.node_ids
        stored = nodes.all() if ids is None else list(nodes.get(ids).values())
        faded = [new for stats in stored if (new := decay(stats, now, self._settings)) is not None]
        nodes.put(faded)
        return Done(len(faded), moved=len(faded))

    def _consolidate(self, command: Consolidate, now: datetime) -> Done[int]:
        ledgers = self._stats.writing.ledgers
        if ledgers.is_consolidated(command.task_id):
            return Done(0)
        boosted = ledgers.boosted(command.task_id)
        gaining = tuple(node_id for node_id in self._used_again(command) if node_id not in boosted)
        boost = self._settings.salience_consolidation_boost
        self._stats.writing.nodes.put(
            attrs.evolve(stats, salience=clamp(stats.salience + boost))
            for stats in self._load(gaining).values()
        )
        pairs = self._shared_pairs(command)
        if pairs:
            learned = self._edges.learned
            fresh = learned.note_consolidated(command.task_id, pairs)
            learned.reinforce(fresh, REINFORCEMENT, "consolidation", self._new_edge_id, now)
        ends = [(first, second) for first, second, _ in pairs]
        ledgers.add_consolidation(command.task_id, gaining, ends, now)
        return Done(len(gaining), moved=len(gaining))

    def _used_again(self, command: Consolidate) -> list[str]:
        """The notes of the task's working memory that came up at least twice."""
        working = self._stats.writing.receipts.working_memory(command.task_id)
        return [
            node.node_id
            for node in working
            if node.activation_count >= _USED_AGAIN and node.node_id in command.namespaces
        ]

    def _shared_pairs(self, command: Consolidate) -> list[tuple[str, str, str]]:
        """The pairs that the ledgers of the statistics do not have yet."""
        ledgers = self._stats.writing.ledgers
        if ledgers.is_consolidated(command.task_id):
            return []
        paired = ledgers.paired(command.task_id)
        pairs = pairs_within(self._used_again(command), command.namespaces)
        return [pair for pair in pairs if pair[:2] not in paired]

    # -- the queue, retention -------------------------------------------------------------------

    def _forget_working(self, command: ForgetWorkingMemory, now: datetime) -> Done[int]:
        self._stats.writing.queue.drop_processed(command.idle_before)
        return Done(self._stats.writing.receipts.forget(command.closed_tasks, command.idle_before))

    def _forget_receipts(self, command: ForgetReceipts, now: datetime) -> Done[int]:
        return Done(self._stats.writing.receipts.drop(command.ids))

    def _forget_pairs(self, command: ForgetPairs, now: datetime) -> Done[PairsForgotten]:
        nodes = self._stats.writing.nodes
        return Done(nodes.forget_pairs(command.after, command.most, command.days, command.now))

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

    # -- the memory of questions, feedback aside -----------------------------------------------

    def _forget_questions(self, command: ForgetQuestions, now: datetime) -> Done[int]:
        return Done(self._stats.writing.questions.forget(command.wanted))

    def _trim_questions(self, command: TrimQuestions, now: datetime) -> Done[int]:
        return Done(self._stats.writing.questions.trim(self._settings.questions_kept))

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
            return Done(None)  # somebody has begun to load those of another one
        last = self._stats.writing.questions.load(matrix, command.after, command.most)
        if last is None:
            matrix.finish()
        return Done(last)
