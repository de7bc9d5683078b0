"""All services over one set of actors: what tools, the front and commands ask."""

from __future__ import annotations

import attrs

from lithos.actors.actors import Actors, settings_of
from lithos.actors.attaching.captions import Captions
from lithos.actors.blocking import Threads
from lithos.core.findings import CARE, OVERVIEW
from lithos.core.history.versions import VersionLimits
from lithos.core.oauth.requests import RESOURCE_PATHS
from lithos.services.attachments.reading import AttachmentReading
from lithos.services.attachments.searching import AttachmentSearch
from lithos.services.context.context import Context
from lithos.services.enrich.drain import Drain
from lithos.services.enrich.entities import EntityExtraction
from lithos.services.enrich.feed import JournalFeed
from lithos.services.enrich.projection import Projection
from lithos.services.enrich.questions import QuestionUpkeep
from lithos.services.enrich.worker import Enrichment, Retention, TaskStates
from lithos.services.importing.importing import Importing
from lithos.services.keyring import TokenRing
from lithos.services.notes.browsing import Browsing, VaultFiles
from lithos.services.notes.conflict_copies import ConflictCopies
from lithos.services.notes.edges import Edges
from lithos.services.notes.history import NoteHistory
from lithos.services.notes.knowledge import Knowledge
from lithos.services.notes.moving import Moving
from lithos.services.notes.proposals import Proposals
from lithos.services.notes.relations import Graph, no_edges
from lithos.services.notes.resources import Changes, Library, Resources
from lithos.services.notes.restoring import Restoring
from lithos.services.notes.texts import NoteTexts, Snippets
from lithos.services.oauth.authorization import AuthorizationServer
from lithos.services.retrieve.evidence import EvidencePipeline
from lithos.services.retrieve.feedback import Feedback, Learning
from lithos.services.retrieve.questions import QuestionMemory
from lithos.services.retrieve.retrieve import Retrieve
from lithos.services.retrieve.scout_team import NameScouts, make_team
from lithos.services.retrieve.scouts import Dispatcher, RelationScouts
from lithos.services.search.duplicates import Duplicates
from lithos.services.search.neighbourhood import Neighbourhoods
from lithos.services.search.search import Search
from lithos.services.state import Gauges, ServerState
from lithos.services.tasks.agents import AccessLog, Agents, Cursors
from lithos.services.tasks.board import Board
from lithos.services.tasks.coordination import Coordination
from lithos.services.tasks.event_stream import Activity, EventStreams
from lithos.services.tasks.impact import Impact
from lithos.services.tasks.requests import Requests
from lithos.services.tasks.retention import Upkeep
from lithos.services.tasks.timeline import Timelines
from lithos.services.upkeep import checks_care  # noqa: F401 - it registers checks
from lithos.services.upkeep.care import CareTasks, Rounds
from lithos.services.upkeep.checks import Live, Patient
from lithos.services.upkeep.history import HistoryUpkeep
from lithos.services.upkeep.samples import Samples
from lithos.services.upkeep.validation import Survey
from lithos.services.upkeep.worth import WorthCounter
from lithos.services.writing.cut_reads import CutReads
from lithos.services.writing.pasting import Pasting


class Services:
    """The services, and of the actors what is asked without one."""

    def __init__(self, actors: Actors, keyring: TokenRing | None = None) -> None:
        """`keyring` is that of a vault among several, which outlives this server of it."""
        self.actors = actors
        stores, config, clock = actors.stores, actors.config, actors.clock
        self.config = config
        self.clock = clock
        self.catalogue = actors.catalogue
        #: What notes rest on.
        self.lineage = actors.lineage
        self.learning = Learning(actors.memory.mailbox, stores.stats, Threads())
        self.coordinator = actors.coordinator
        self.broadcaster = actors.broadcaster
        self.semantic = actors.semantic
        #: How far the start is: what clients are served before it is complete says so.
        self.opening = actors.opening
        self.first_looks = actors.first_looks
        self.metrics = actors.metrics
        #: For clients that know no more, deletions answer `success` alone, reads all links.
        self.is_plain = config.server.write_outcomes == "status"
        #: The tokens that are accepted; the front has it follow their file.
        self.keyring = keyring or TokenRing(
            config.storage.data_dir / ".lithos",
            clock,
            config.server.auth_token,
            asks_always=config.server.public_url is not None,
        )
        actors.writer.scopes = attrs.evolve(actors.writer.scopes, of_token=self.keyring.scope_of)
        #: Lets clients elsewhere in; None without `server.public_url`, and with somebody else's issuer.
        self.authorization = self._make_authorization()
        texts = NoteTexts(stores.files, actors.catalogue, actors.opening)
        #: Notes as their files say now.
        self.texts = texts
        self.search = Search(actors, texts)
        #: Notes that say the same.
        self.duplicates = Duplicates(actors.semantic, actors.catalogue, stores.files, actors.sizes)
        remembered = QuestionMemory(actors, self.learning, texts)
        self.history = NoteHistory(stores.history, Threads(2), actors.catalogue)
        self.knowledge = Knowledge(actors, self.search, texts, self.history, remembered.cited_before)
        self.pasting = Pasting(actors.catalogue, texts)
        #: What was given out cut.
        self.cut_reads = CutReads(actors.catalogue, texts)
        self.restoring = Restoring(self.history, self.knowledge, actors.catalogue, texts, Threads())
        self.moving = Moving(actors)
        self.proposals = Proposals(actors, self.knowledge, self.moving, self.history, texts)
        self.conflict_copies = ConflictCopies(actors, self.knowledge, texts)
        #: Typed edges.
        self.edges = Edges(actors, self.knowledge)
        self.graph = Graph(actors.catalogue, self.edges.list_edges if config.lcma.enabled else no_edges)
        self.browsing = Browsing(actors, texts)
        self.attachments = AttachmentReading(
            actors.attaching, actors.catalogue, Captions(actors.catalogue, stores.files), stores.files
        )
        self.attachment_search = AttachmentSearch(actors.attaching, config.search)
        self.vault_files = VaultFiles(stores.files, actors.catalogue, Threads(2))
        self.neighbourhoods = Neighbourhoods(actors.catalogue, self.edges, self.search.centrality)

        feedback = Feedback(actors, self.learning, self.knowledge, remembered.prepare)
        self._add_tasks(texts, feedback)
        self._add_learning(texts, remembered, feedback)
        self._add_upkeep(texts)

    def _add_tasks(self, texts: NoteTexts, feedback: Feedback) -> None:
        actors, config = self.actors, self.config
        journal, reading = actors.stores.coordination, actors.coordination_reading
        #: Calls that are known by their `request_id`.
        self.requests = Requests(actors.coordinator.mailbox)
        self.coordination = Coordination(actors, feedback if config.lcma.enabled else None)
        self.impact = Impact(actors, self.knowledge, self.coordination)
        self.agents = Agents(actors.coordinator)
        self.access_log = AccessLog(actors.coordinator.mailbox, journal, reading)
        self.cursors = Cursors(actors.coordinator.mailbox, journal, reading)
        self.streams = EventStreams(actors.broadcaster, journal, reading)
        self.activity = Activity(actors.broadcaster, journal, reading)
        self.board = Board(actors)
        self.timelines = Timelines(actors, self.access_log, self.history, self.learning, self.search.asked)
        resources = Resources(actors, texts, self.knowledge, self.coordination)
        self.library = Library(resources, Changes(actors.broadcaster))
        self.importing = Importing(actors, self.knowledge, self.edges, texts)

    def _add_learning(self, texts: NoteTexts, remembered: QuestionMemory, feedback: Feedback) -> None:
        actors, config = self.actors, self.config
        self.retrieve = self._make_retrieve(texts, remembered)
        self.context = Context(
            actors, self.retrieve, self.search, self.attachment_search, texts, self.coordination
        )
        self.projection = Projection(actors.catalogue, self.learning)
        self.entities = EntityExtraction(
            actors.catalogue,
            texts,
            self.learning,
            patch=self.knowledge.write if config.lcma.write_entities else None,
            index=actors.fulltext_indexer,
        )
        self.questions = QuestionUpkeep(actors, self.learning, remembered, texts)
        #: None where `lcma.enabled` is false.
        self.enrichment = self._make_enrichment(feedback) if config.lcma.enabled else None

    def _add_upkeep(self, texts: NoteTexts) -> None:
        actors = self.actors
        survey = Survey(self.config.storage.data_dir, actors.stores.files, actors.catalogue, is_live=True)
        #: What checks look at.
        self.patient = Patient(
            config=self.config, clock=self.clock, live=Live(actors, self.projection), survey=survey
        )
        self.upkeep = Upkeep(actors)
        self.worth = WorthCounter(actors, self.learning)
        days = self.config.care.days
        self.care, self.concerns = (
            Rounds(view, most, actors, texts, days) for view, most in ((CARE, 200), (OVERVIEW, 10))
        )
        self.care_tasks = CareTasks(self.coordination)
        #: None where `history.enabled` is off.
        self.history_upkeep = self._make_history_upkeep()
        self.state = ServerState(actors, lambda: self.keyring.trouble)
        self.gauges = Gauges(actors, self.state, self.learning)
        self.samples = Samples(
            actors.metrics,
            Threads(),
            actors.clock,
            head=lambda: actors.broadcaster.head,
            subscribers=lambda: int(
                sum(self.gauges.watched(f"{kind}_active_clients") for kind in ("sse", "ws"))
            ),
        )

    def _make_authorization(self) -> AuthorizationServer | None:
        config = self.config
        address, oauth = config.server.public_url, config.server.oauth
        if address is None:
            return None
        if oauth.issuer is not None:
            from lithos.services.oauth.foreign import ForeignTokens  # noqa: PLC0415 - most do without

            own = tuple(f"{address}{path}" for path in RESOURCE_PATHS)
            audience = own if oauth.audience is None else (oauth.audience,)
            self.keyring.foreign = ForeignTokens(
                oauth.issuer, audience, oauth.rights_claim, oauth.rights, self.clock
            )
            return None
        return AuthorizationServer(address, config.storage.data_dir / ".lithos", self.keyring, self.clock)

    def _make_retrieve(self, texts: NoteTexts, remembered: QuestionMemory) -> Retrieve:
        actors, catalogue, learning = self.actors, self.catalogue, self.learning
        team = make_team(
            NameScouts(catalogue), RelationScouts(catalogue, self.edges.touching, self.coordination)
        )
        dispatcher = Dispatcher(catalogue, actors.metrics)
        pipeline = EvidencePipeline(
            catalogue, self.search, remembered, dispatcher, team, actors.reading, actors.lineage
        )
        snippets = Snippets(texts, actors.sizes)
        return Retrieve(actors, team, pipeline, snippets, learning, dispatcher)

    def _make_enrichment(self, feedback: Feedback) -> Enrichment:
        """The worker, ready to run."""
        actors, learning, config = self.actors, self.learning, self.config.lcma
        drain = Drain(
            actors=actors,
            feed=JournalFeed(self.actors, self.learning),
            memory=learning,
            projection=self.projection,
            entities=self.entities,
            questions=self.questions,
        )
        retention = Retention(
            learning,
            TaskStates(actors).unsettled,
            actors.settled,
            receipts_kept=config.receipts_kept,
            has_note=actors.catalogue.__contains__,
        )
        return Enrichment(drain, retention, feedback.catch_up)

    def _make_history_upkeep(self) -> HistoryUpkeep | None:
        """The configured retention of `history.db`, ready to run."""
        actors, store = self.actors, self.actors.stores.history
        if store is None:
            return None
        limits = settings_of(VersionLimits, self.config.history)
        return HistoryUpkeep(store, actors.recorder.blocking, Threads(), actors.settled, limits)
