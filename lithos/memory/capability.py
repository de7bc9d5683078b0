"""The registration of the memory capability, which learns from use."""

from __future__ import annotations

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.reading import JournalThread
from lithos.events.journal.settled_clock import SettledClock
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.threads import NoteThreads, Threads
from lithos.kernel.capability import Background, Capability, NavigationLink, Pages, Store
from lithos.kernel.databases.open_stores import Occasion
from lithos.kernel.parts import Clock, Parts
from lithos.kernel.state import Gauge, HealthCheck, Observed
from lithos.memory.context.context import Context
from lithos.memory.enrich.drain import Drain
from lithos.memory.enrich.entities import EntityExtraction
from lithos.memory.enrich.feed import JournalFeed
from lithos.memory.enrich.projection import Projection
from lithos.memory.enrich.questions import QuestionUpkeep
from lithos.memory.enrich.worker import Enrichment, StatsRetention, TaskStates
from lithos.memory.learning.actor import Memory
from lithos.memory.retrieve.evidence import EvidencePipeline
from lithos.memory.retrieve.feedback import Feedback, Learning, Lessons
from lithos.memory.retrieve.questions import QuestionMemory
from lithos.memory.retrieve.retrieve import Retrieve
from lithos.memory.retrieve.scout_team import NameScouts, Team, make_team
from lithos.memory.retrieve.scouts import Dispatcher, RelationScouts
from lithos.memory.rows.edges import EdgeStore
from lithos.memory.rows.stats import StatsStore
from lithos.memory.service.edges import Edges
from lithos.memory.service.neighbourhood import Neighbourhoods
from lithos.memory.settings import LcmaConfig
from lithos.memory.state import look_at_memory, measure_queue
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.lineage import Lineage
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.service.relations import Graph, no_edges
from lithos.notes.service.texts import NoteTexts
from lithos.search.indexing.indexer import FulltextIndexer
from lithos.search.service.cache import CitedBefore
from lithos.search.service.search import Search
from lithos.tasks.service.coordination import CompletionLearning, Coordination


def open_edges(occasion: Occasion) -> EdgeStore:
    """Open the database for typed edges between notes."""
    return EdgeStore.open(occasion.private / "edges.db", occasion.now)


def open_stats(occasion: Occasion) -> StatsStore:
    """Open the database for statistics that are learned from use."""
    return StatsStore.open(occasion.private / "stats.db", occasion.now)


def make_memory(
    edges: EdgeStore,
    stats: StatsStore,
    coordinator: Coordinator,
    journal: CoordinationStore,
    journal_thread: JournalThread,
    clock: Clock,
    lcma: LcmaConfig,
    catalogue: Catalogue,
) -> Memory:
    """Return the actor that owns `edges.db` and `stats.db`."""
    return Memory(
        edges,
        stats,
        Threads(),
        coordinator,
        journal,
        journal_thread,
        clock,
        questions_kept=lcma.questions_kept,
        relations=catalogue.relations,
        entities=catalogue.entities,
    )


def make_learning(memory: Memory, stats: StatsStore) -> Learning:
    """Return the service that reads and changes the statistics."""
    return Learning(memory.mailbox, stats, Threads())


def make_cited_before(questions: QuestionMemory) -> CitedBefore:
    """Return the search for notes that were cited for a similar question."""
    return questions.cited_before


def make_graph(catalogue: Catalogue, edges: Edges, lcma: LcmaConfig) -> Graph:
    """Return the service for relations between notes."""
    return Graph(catalogue, edges.list_edges if lcma.enabled else no_edges)


def make_feedback(
    catalogue: Catalogue,
    learning: Learning,
    knowledge: Knowledge,
    lessons: Lessons,
    questions: QuestionMemory,
    lcma: LcmaConfig,
) -> Feedback | None:
    """Return the service that learns from citations, or None if `lcma.enabled` is false."""
    if not lcma.enabled:
        return None
    return Feedback(catalogue, learning, knowledge, lessons, questions.prepare)


def make_teaching(feedback: Feedback | None) -> CompletionLearning | None:
    """Return the service that learns from completed tasks."""
    return feedback


def make_team_of_scouts(catalogue: Catalogue, edges: Edges, coordination: Coordination) -> Team:
    """Return the team of scouts for retrievals."""
    return make_team(NameScouts(catalogue), RelationScouts(catalogue, edges.touching, coordination))


def make_pipeline(
    catalogue: Catalogue,
    search: Search,
    questions: QuestionMemory,
    dispatcher: Dispatcher,
    team: Team,
    threads: NoteThreads,
    lineage: Lineage,
) -> EvidencePipeline:
    """Return the ranking pipeline for retrievals."""
    return EvidencePipeline(catalogue, search, questions, dispatcher, team, threads, lineage)


def make_entities(
    catalogue: Catalogue,
    texts: NoteTexts,
    learning: Learning,
    knowledge: Knowledge,
    words: FulltextIndexer,
    lcma: LcmaConfig,
) -> EntityExtraction:
    """Return the entity extraction for notes."""
    patch = knowledge.write if lcma.write_entities else None
    return EntityExtraction(catalogue, texts, learning, patch=patch, index=words)


def make_enrichment(
    drain: Drain,
    learning: Learning,
    states: TaskStates,
    settled: SettledClock,
    lcma: LcmaConfig,
    catalogue: Catalogue,
    feedback: Feedback | None,
) -> Enrichment | None:
    """Return the worker that learns in the background, or None if `lcma.enabled` is false."""
    if feedback is None:
        return None
    retention = StatsRetention(
        learning,
        states.unsettled,
        settled,
        receipts_kept=lcma.receipts_kept,
        has_note=catalogue.__contains__,
    )
    return Enrichment(drain, retention, lcma, feedback.catch_up)


async def has_memory(server: Parts, thing: str) -> bool:
    """Return whether a receipt or an edge with this id exists."""
    if thing.startswith("rcpt_"):
        return await server.get(Learning).receipt(thing) is not None
    return thing.startswith("edge_") and await server.get(Edges).find(thing) is not None


def make_neighbourhoods(catalogue: Catalogue, edges: Edges, search: Search) -> Neighbourhoods:
    """Return the service that draws the relations around a note."""
    return Neighbourhoods(catalogue, edges, search.centrality)


MEMORY = Capability(
    name="memory",
    makers=(
        make_memory,
        make_learning,
        QuestionMemory,
        make_cited_before,
        Edges,
        make_graph,
        Lessons,
        make_feedback,
        make_teaching,
        Dispatcher,
        make_team_of_scouts,
        make_pipeline,
        Retrieve,
        Context,
        Projection,
        make_entities,
        QuestionUpkeep,
        JournalFeed,
        Drain,
        TaskStates,
        make_enrichment,
        make_neighbourhoods,
    ),
    background=(
        Background(QuestionUpkeep, QuestionUpkeep.take_orders),
        Background(Enrichment, Enrichment.run),
        Background(Enrichment, Enrichment.keep_questions),
    ),
    pages=Pages(
        modules=(
            "lithos.memory.console.graph",
            "lithos.memory.console.receipts",
            "lithos.memory.console.contradictions",
            "lithos.memory.pages",
        ),
        links=(NavigationLink(4, "Graph", "/console/graph", "g"),),
    ),
    tools=(
        "lithos.memory.tools_rows",
        "lithos.memory.tools.memory",
        "lithos.memory.tools.context",
        "lithos.memory.tools.relations",
        "lithos.search.tools_connector",
        "lithos.memory.tools.legacy",
    ),
    holds=has_memory,
    stores=(Store(20, open_edges), Store(30, open_stats)),
    health=(HealthCheck("memory", 9, look_at_memory),),
    gauges=(Gauge(110, measure_queue),),
    actors=(Observed(5, Memory),),
)
