"""The inventory of bounds: what limits each table, container in memory and query parameter that could grow.

`tests/test_inventory.py` finds them in fresh databases and in the source, and fails for one that is missing
here or is here without existing. To add one, bound it first, then enter here by what. The lengths of
tool arguments are where they are declared (`tools.contract.bounds`).

Three words: a *user's* row is kept for as long as the user keeps it, as a note is, with bounded texts; one
*per note* goes with its note; a *call's* container ends with its call, connection or session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen


@frozen
class Bound:
    """At most so many rows or items, and so many bytes: a figure, a setting, or what they follow from."""

    rows: str
    size: str


_IDS: Final = "some 300 bytes each"
_PER_NOTE: Final = Bound("one per note", "what `core.limits` keeps of a file")
_PER_NOTE_ID: Final = Bound("one per note", _IDS)
_USERS: Final = Bound("a user's: tasks and findings are kept", "`tools.contract.bounds` for every text")
_GONE: Final = Bound("one per note, and `services.enrich.worker.GONE_NOTES`", _IDS)
_ENTITIES: Final = Bound(
    "one per note, and `services.enrich.worker.GONE_NOTES`",
    "`lcma.entity_max_per_doc` names of `core.text.entity_text.LONGEST`",
)
_LEDGER: Final = Bound("tasks of `services.enrich.worker.LEDGERS`, their pairs of retrieved notes", _IDS)
_IMPORTED: Final = Bound("one per row that an import carried over", _IDS)
_PER_EDGE: Final = Bound("one per edge of a lineage, and per unresolved contradiction", _IDS)
_FIXED: Final = Bound("fixed when the server starts", "fixed")
_CALL: Final = Bound("a call's, ends with it", "what the call was given or found")
_CONNECTIONS: Final = Bound("one per open connection or request", "some kilobytes each")
_TOKENS: Final = Bound(
    "`stores.tokens.MOST_TOKENS`", "names of `stores.tokens.LONGEST_AGENT` and a hash each"
)
_MAILBOX: Final = Bound("the capacity that each actor gives", "the messages, whose askers wait")
_ROWS_TO_SETTLE: Final = Bound("changes within `actors.writing.recording.TIDY_AFTER`", "a number each")
_IMPORT: Final = Bound(
    "one per conversation of an export, ends with the import", "12 bytes each, some 100 in a set"
)
_LIBRARY: Final = Bound("one per note file", _IDS)

#: `<database>.<table>`.
TABLES: Final[Mapping[str, Bound]] = {
    "coordination.access_log": Bound(
        "`events.audit_rows`, `events.audit_days`; those that upstream stored stay", "some 200 bytes each"
    ),
    "coordination.agents": Bound(
        "`services.tasks.retention.AGENTS`, idle ones a year, more only with something to their name",
        "`services.tasks.retention.AGENT_BYTES`",
    ),
    "coordination.citations": Bound("a user's: at most 1,000 per completed task, which is kept", _IDS),
    "coordination.claims": Bound(
        "`actors.coordinating.task_claims.ASPECTS` per open task; 30 days after their end", "names"
    ),
    "coordination.claim_ends": Bound("one per claim, goes with it", "an id and an aspect twice"),
    "coordination.counters": _FIXED,
    "coordination.cursors": Bound("`services.tasks.retention.CURSORS`, idle ones a year", "a name each"),
    "coordination.events": Bound("`events.journal_size`", "2,560 times `events.journal_size`"),
    "coordination.findings": _USERS,
    "coordination.imported_rows": _IMPORTED,
    "coordination.lessons": Bound(
        "`stores.coordination.tasks.KEPT`, dropped when learned", "2 lists of ids each"
    ),
    "coordination.meta": _FIXED,
    "coordination.note_creations": _PER_NOTE_ID,
    "coordination.note_ids": _PER_NOTE_ID,
    "coordination.note_intents": Bound("versions a note got since the manifest was written", _IDS),
    "coordination.note_versions": _PER_NOTE_ID,
    "coordination.read_counts": Bound("one per note, and `services.tasks.retention.GONE_NOTES`", _IDS),
    "coordination.ready_tasks": Bound("one per task that is ready", _IDS),
    "coordination.task_edges": _USERS,
    "coordination.tasks": _USERS,
    "coordination.unreadable_times": Bound("times of an older file that were none, once", "a value each"),
    "coordination.timers": Bound("one per open timer gate", _IDS),
    "edges.applied_lessons": Bound("one per lesson that waits", _IDS),
    "edges.consolidation_ops": _LEDGER,
    "edges.edges": Bound("a user's, or one per pair of notes cited together", "64 kB of evidence each"),
    "edges.imported_rows": _IMPORTED,
    "edges.outbox": Bound("edges whose event is not journalled yet", "the event"),
    "history.contents": Bound(
        "at most one per version, and 49 that others are differences to", "`storage.max_content_size_bytes`"
    ),
    "history.meta": _FIXED,
    "history.notes": Bound("one per note, gone ones `history.keep_deleted_days`", _IDS),
    "history.versions": Bound(
        "`history.keep_versions`, `history.keep_days`, `core.history.retention.MOST_VERSIONS` per note",
        "what `core.limits` keeps of a path and a title",
    ),
    "leads.leads": Bound("one per note", "`core.learning.lead.MOST_STEMS` numbers"),
    "manifest.files": _PER_NOTE,
    "manifest.meta": _FIXED,
    "manifest.reading": _FIXED,
    "stats.applied_lessons": Bound("one per lesson that waits", _IDS),
    "stats.coactivation": Bound("pairs retrieved together within `lcma.coactivation_days`", _IDS),
    "stats.consolidation_edge_ops": _LEDGER,
    "stats.consolidation_salience_ops": _LEDGER,
    "stats.edge_inference_log": Bound(
        "`stores.learning.queue.JUDGED` per note, gone ones as statistics", _IDS
    ),
    "stats.enrich_queue": Bound("changes of `lcma.wm_eviction_days`; given up ones a year", _IDS),
    "stats.extracted_entities": _ENTITIES,
    "stats.imported_rows": _IMPORTED,
    "stats.llm_budget": Bound("one per day of a year", _IDS),
    "stats.node_stats": _GONE,
    "stats.question_memory": Bound(
        "`lcma.questions_kept`, dropped with their note",
        "`core.learning.questions.QUESTION_KEPT` and a vector each",
    ),
    "stats.question_texts": Bound(
        "one per note with remembered questions",
        "4 bytes times `core.learning.questions.SKETCHED`",
    ),
    "stats.receipts": Bound(
        "`lcma.receipts_kept`, and those of open tasks", "`core.learning.memory.QUERY_KEPT` and 2 kB each"
    ),
    "stats.task_consolidation_log": _LEDGER,
    "stats.working_memory": Bound("notes retrieved for open tasks within `lcma.wm_eviction_days`", _IDS),
}

#: `<module>.<class>.<attribute>` of each container that a method may fill, `<module>.<name>` outside classes.
CONTAINERS: Final[Mapping[str, Bound]] = {
    "actors.coordinating.broadcaster.Broadcaster._subscriptions": Bound(
        "`events.max_sse_clients` and `events.max_ws_clients`", "their queues"
    ),
    "actors.coordinating.broadcaster.Broadcaster._watchers": _FIXED,
    "actors.coordinating.broadcaster.Broadcaster.recent": Bound(
        "`events.event_buffer_size`", "`actors.coordinating.broadcaster.RING_BYTES`"
    ),
    "actors.coordinating.broadcaster.Subscription._send": Bound(
        "`events.subscriber_queue_size`", "shared events"
    ),
    "actors.coordinating.broadcaster.Subscription.events": Bound(
        "`events.subscriber_queue_size`", "shared events"
    ),
    "catalogue.catalogue.Catalogue._by_id": _PER_NOTE,
    "stores.importing.conversations._Reading._ids": _IMPORT,
    "stores.importing.conversations._Reading._slugs": _IMPORT,
    "catalogue.catalogue.Catalogue._by_path": _PER_NOTE_ID,
    "catalogue.catalogue.Catalogue._by_serial": _PER_NOTE_ID,
    "catalogue.note_records.KeptEntities._found": _ENTITIES,
    "catalogue.lineage.Lineage._causes": _PER_NOTE_ID,
    "catalogue.lineage.Lineage._doubtful": _PER_NOTE_ID,
    "catalogue.relations.Pairs._ids": Bound("what notes say: `core.limits.ITEMS` each", _IDS),
    "catalogue.relations.Relations.leaves": Bound("`catalogue.relations.MOST_LEAVES`", "an id each"),
    "catalogue.relations.Relations.quarantined": _PER_NOTE_ID,
    "catalogue.relations.TypedEdges._dependents": _PER_EDGE,
    "catalogue.relations.TypedEdges._edges": _PER_EDGE,
    "catalogue.relations.TypedEdges._opposed": _PER_EDGE,
    "catalogue.relations.TypedEdges._sources": _PER_EDGE,
    "catalogue.catalogue.Catalogue._own_ids": _PER_NOTE_ID,
    "catalogue.catalogue.Catalogue.broken": _PER_NOTE_ID,
    "catalogue.catalogue.Catalogue.skipped": _LIBRARY,
    "catalogue.catalogue.Catalogue.doubles": _LIBRARY,
    "catalogue.catalogue.Catalogue.tags": _PER_NOTE,
    "catalogue.catalogue.UniqueKeys._claimants": _PER_NOTE_ID,
    "services.importing.report.Report.tables": _FIXED,
    "services.importing.tables.Remembered.renamed": Bound(
        "`services.importing.tables.MOST_REMEMBERED`, until the import ends", "2 ids each"
    ),
    "services.importing.tables.Remembered.taken": Bound(
        "tasks of the source whose ids are taken here, until the import ends", _IDS
    ),
    "services.importing.tables.Remembered.tasks": Bound(
        "`services.importing.tables.MOST_REMEMBERED`, until the import ends", _IDS
    ),
    "stores.carrying.RowMerger._uniques": _CALL,
    "stores.carrying.RowMerger.created": _CALL,
    "stores.carrying.RowMerger.updated": _CALL,
    "actors.coordinating.coordinator.Coordinator._audit": Bound(
        "`actors.coordinating.coordinator.AUDIT_BACKLOG`", _IDS
    ),
    "actors.coordinating.coordinator.Coordinator._reads": Bound(
        "one per note, and `services.tasks.retention.GONE_NOTES`", _IDS
    ),
    "actors.coordinating.coordinator.Coordinator._touched": Bound(
        "agents seen within half a second", "names"
    ),
    "actors.coordinating.coordinator.Coordinator._unwritten": Bound(
        "notes written while the journal cannot be, which `/health` tells", "the events"
    ),
    "actors.coordinating.coordinator.Coordinator.agents": Bound(
        "as the table `agents`, looked at early when much is registered",
        "`services.tasks.retention.AGENT_BYTES`",
    ),
    "actors.coordinating.task_choice.Marks._places": Bound(
        "`actors.coordinating.task_choice.KINDS`", "the aspect and the filter of a call each"
    ),
    "catalogue.note_graph.NoteGraph._notes": _PER_NOTE,
    "catalogue.note_graph.NoteGraph._targets": Bound("one per link target", _IDS),
    "catalogue.note_graph.Interest._waiting": Bound("one per link target", _IDS),
    "actors.watching.guard.DeletionGuard._dropped": Bound(
        "removals within `actors.watching.guard.WINDOW`", "two numbers each"
    ),
    "actors.watching.guard.DeletionGuard._kept": _PER_NOTE_ID,
    "catalogue.relinking._Planning._meant": _CALL,
    "catalogue.relinking._Planning._pages": _CALL,
    "catalogue.relinking._Planning._sources": _CALL,
    "services.importing.importing._Session.notes": Bound(
        "one per imported note of the kind; one session at a time", _IDS
    ),
    "services.importing.importing._Session.own_ids": Bound("one per note that the import makes", "a number"),
    "services.importing.importing._Session.paths": Bound("one per note that the import makes", "a number"),
    "services.importing.importing._Session.seen": Bound(
        "`services.importing.importing.MOST_SEEN`", "a number"
    ),
    "services.importing.importing._Session.titles": Bound("`services.importing.importing.MOST_TITLES`", _IDS),
    "services.importing.report.Report.attachments": _FIXED,
    "services.importing.report.Report.carried": _FIXED,
    "services.importing.report.Report.counted": _FIXED,
    "services.importing.report.Report.edges": _FIXED,
    "services.importing.report.Report.listed": Bound(
        "`services.importing.report.MOST_LISTED` of each kind", "`services.importing.report.LONGEST` a text"
    ),
    "services.importing.report.Report.results": _FIXED,
    "services.notes.moving.Moving._receive": Bound("`services.notes.moving.CAPACITY`", "a request each"),
    "services.notes.moving.Moving._send": Bound("`services.notes.moving.CAPACITY`", "a request each"),
    "actors.writing.editing.Outlines._kept": Bound(
        "`actors.writing.editing.KEPT`",
        "`actors.writing.editing.KEPT_CHARACTERS` of bodies in all, or one body",
    ),
    "actors.writing.keeper.Keeper._waiting": Bound(
        "`actors.writing.keeper.CAPACITY`", "paths; the files are on the disk"
    ),
    "actors.kit.Mailbox._send": Bound(
        "the capacity that each actor gives", "the messages, whose askers wait"
    ),
    "actors.kit.Mailbox.inbox": Bound(
        "the capacity that each actor gives", "the messages, whose askers wait"
    ),
    "actors.remembering.actor.Memory._pairs": Bound(
        "`actors.remembering.actor.PAIRS_WAITING` and those of one batch", _IDS
    ),
    "actors.remembering.actor.Memory._undelivered": Bound("rows of the outbox", "the events"),
    "catalogue.note_records.NoteRecords._creations": _PER_NOTE_ID,
    "catalogue.note_records.NoteRecords._ids": _PER_NOTE_ID,
    "catalogue.note_records.NoteRecords._intents": _PER_NOTE_ID,
    "catalogue.note_records.NoteRecords._paths": _PER_NOTE_ID,
    "catalogue.note_records.NoteRecords._undecided": _PER_NOTE_ID,
    "catalogue.note_records.NoteRecords._urgent": _PER_NOTE_ID,
    "catalogue.note_records.NoteRecords._urgent_intents": _PER_NOTE_ID,
    "catalogue.note_records.NoteRecords._versions": _PER_NOTE_ID,
    "actors.writing.outside_changes.Taken.again": _CALL,
    "actors.writing.outside_changes.Taken.changes": _CALL,
    "actors.writing.outside_changes.Taken.displaced": _CALL,
    "actors.writing.outside_changes.Taken.present": _CALL,
    "actors.writing.outside_changes.Taken.versions": _CALL,
    "actors.writing.recording.Recorder._confirmed": _ROWS_TO_SETTLE,
    "actors.writing.recording.Recorder._refused": _ROWS_TO_SETTLE,
    "actors.writing.publisher.Publisher._unjournalled": _PER_NOTE,
    "actors.writing.publisher.Publisher._unrecorded": _PER_NOTE,
    "actors.writing.publisher.Publisher._withheld": _PER_NOTE,
    "actors.indexing.coverage.Coverage._lacking": _PER_NOTE_ID,
    "actors.indexing.coverage.Coverage._stamps": _PER_NOTE_ID,
    "actors.indexing.coverage.Coverage._todo": _PER_NOTE_ID,
    "actors.indexing.ports.VectorQueries._waiting": Bound("searches under way", "their vectors"),
    "actors.watching.pending.Pending._compare": _LIBRARY,
    "actors.watching.pending.Pending._missing": _LIBRARY,
    "actors.watching.pending.Pending._touched": _LIBRARY,
    "actors.watching.survey._Search.found": _CALL,
    "actors.watching.survey._Search.nameless": _CALL,
    "actors.watching.survey._Search.read": _CALL,
    "actors.watching.settling.Taking._doubtful": _LIBRARY,
    "actors.watching.settling.Taking._empty": _LIBRARY,
    "actors.watching.watcher.Watcher._failures": Bound("`actors.watching.watcher.FAILURES`", "a number each"),
    "actors.watching.watcher.Watcher._troubles": Bound("one per kind of trouble", "a sentence each"),
    "app.allocator._glibc": _FIXED,
    "app.evaluation.asking._Asking._known": Bound(
        "`core.evaluation.questions.MOST_QUESTIONS` times twice `core.evaluation.questions.MOST_NAMES`",
        "the file, `core.evaluation.questions.LARGEST_FILE`",
    ),
    "app.evaluation.asking._Asking.degraded": _FIXED,
    "front.bridge.bridge.Bridge._calls": _CONNECTIONS,
    "front.bridge.bridge.Bridge._outgoing": Bound("`front.bridge.bridge.WRITTEN_AHEAD`", "answers"),
    "front.bridge.bridge.Bridge._sender": Bound("`front.bridge.bridge.WRITTEN_AHEAD`", "answers"),
    "front.bridge.link.OwnerLink._waiting": _CONNECTIONS,
    "front.console.formats.make_environment": _FIXED,
    "front.console.pages.overview.Happenings._kept": Bound(
        "`front.console.pages.overview.MOST_KEPT`", "a sentence of HTML, cut texts in it"
    ),
    "front.console.pages.tasks.BoardPages._drafts": Bound(
        "`front.console.pages.tasks.MOST_DRAFTS`", "`front.console.pages.tasks.LONGEST_DRAFT` a field"
    ),
    "front.console.pages.undo.UndoPages._reports": Bound(
        "`front.console.pages.undo.MOST_REPORTS`", "`front.console.pages.undo.MOST_NOTES` notes' results"
    ),
    "front.console.sessions.Session._notices": Bound("`front.console.sessions.MOST_NOTICES`", "sentences"),
    "front.console.sessions.Session.submissions": Bound(
        "`front.console.sessions.MOST_SUBMISSIONS`", "a key and a location"
    ),
    "front.console.sessions.Sessions._by_id": Bound("`front.console.sessions.MOST_SESSIONS`", "sessions"),
    "front.console.sessions.Sessions._ended": Bound(
        "`front.console.sessions.MOST_SESSIONS`", "a sentence each"
    ),
    "front.server.connections.Connections._open": _CONNECTIONS,
    "front.server.exchanges.Exchanges._open": _CONNECTIONS,
    "front.server.admissions.Admissions._open": _CONNECTIONS,
    "front.server.admissions.WrongTokens._by_address": Bound(
        "`front.server.admissions.MOST_ADDRESSES`", "an address and three numbers each"
    ),
    "services.keyring.TokenRing._by_digest": _TOKENS,
    "services.keyring.TokenRing._by_principal": _TOKENS,
    "front.mcp.sdk.SdkTransports._openers": _CONNECTIONS,
    "front.mcp.session._Unanswered._ids": _CONNECTIONS,
    "front.mcp.session._Unanswered._listening": _CONNECTIONS,
    "metrics.Metrics._begun": Bound("fixed: the tools, kinds, modes and mailboxes", "fixed"),
    "metrics.Metrics._counters": Bound("fixed instruments with bounded labels", "fixed"),
    "metrics.Metrics._histograms": Bound("fixed instruments with bounded labels", "fixed"),
    "metrics._Gauges.samples": _CALL,
    "services.notes.undo.UndoRun._tried": _CALL,
    "services.notes.undo.UndoRun._settled": _CALL,
    "services.notes.undo.UndoRun._began": _CALL,
    "services.tasks.dossier._Tree._seen": _CALL,
    "services.notes.resource_changes.Changes._followers": Bound(
        "sessions, `front.mcp.subscriptions.MOST_LISTENERS`", "theirs"
    ),
    "services.notes.resource_changes.Follower._due": Bound(
        "`services.notes.resource_changes.MOST_URIS`", "`services.notes.resource_changes.LONGEST_URI` each"
    ),
    "services.notes.resource_changes.Follower._followed": Bound(
        "`services.notes.resource_changes.MOST_URIS`", "`services.notes.resource_changes.LONGEST_URI` each"
    ),
    "services.notes.resource_changes.Follower._told": Bound(
        "`services.notes.resource_changes.MOST_URIS`", "`services.notes.resource_changes.LONGEST_URI` each"
    ),
    "services.tasks.agents.Cursors._moving": Bound("`events.max_ws_clients`", "a name each"),
    "services.enrich.feed.DirectFeed._pending": Bound("`services.enrich.feed.MOST_PENDING`", _IDS),
    "services.tasks.event_stream.EventStream._pending": Bound(
        "`services.tasks.event_stream.PAGE`", "`stores.coordination.store.PAGE_BYTES` and one event"
    ),
    "services.state.Gauges._statuses": Bound("one for each component of `/health`", "some bytes each"),
    "services.state.Gauges._watched": _FIXED,
    "services.search.drawing.Drawings._kept": Bound(
        "`services.search.drawing.KEPT`", "places of `services.search.neighbourhood.MOST_NOTES` each"
    ),
    "services.search.graph_search.Centrality._places": _PER_NOTE_ID,
    "services.search.graph_search.Centrality._scores": _PER_NOTE_ID,
    "services.retrieve.evidence._Looked.scores": _CALL,
    "services.retrieve.scouts.Report.failed": _CALL,
    "services.retrieve.scouts.Report.fired": _CALL,
    "services.retrieve.scouts.Report.found": _CALL,
    "catalogue.facets.Facets._late": _PER_NOTE_ID,
    "catalogue.facets.Facets._late_serials": _PER_NOTE_ID,
    "catalogue.facets.Titles._blocks": _PER_NOTE,
    "services.context.splits.Splits._kept": Bound(
        "what fits", "`services.context.splits.SPLIT_BYTES`, `services.context.splits.LONGEST_SPLIT` each"
    ),
    "stores.notes.recall.Recall._notes": Bound(
        "what fits", "`stores.notes.recall.RECALLED_BYTES`, `stores.notes.recall.LONGEST_RECALLED` each"
    ),
    "services.notes.texts._KeptContents._contents": Bound(
        "what fits", "`services.notes.texts.KEPT_BYTES` and `services.notes.texts.KEPT_VISIBLE_BYTES`"
    ),
    "services.upkeep.samples.Samples._kept": Bound("`services.upkeep.samples.KEPT`", "some numbers each"),
    "stores.coordination.ready_rows.WaitingCounts._known": Bound(
        "`stores.coordination.ready_rows.FILTERS_KEPT`", "the filter of a call each"
    ),
    "stores.indexes.chunk_rows.ChunkRows._free": Bound("gaps between chunks in the index", "a number each"),
    "stores.learning.question_matrix.QuestionMatrix._free": Bound("`lcma.questions_kept`", "a number each"),
    "stores.learning.question_matrix.QuestionMatrix._notes": Bound(
        "notes with questions since the last load", _IDS
    ),
    "stores.learning.question_matrix.QuestionMatrix._numbers": Bound(
        "notes with questions since the last load", _IDS
    ),
    "stores.learning.question_matrix.QuestionMatrix._row_of": Bound("`lcma.questions_kept`", "a number each"),
    "stores.learning.questions.QuestionRows.touched": Bound(
        "entries changed by one batch, taken after each", "a number each"
    ),
    "stores.database.Database._former": Bound(
        "connections that somebody holds to a file that was taken away; at most five are put back", "fixed"
    ),
    "stores.notes.files.NoteFiles._kept": Bound("one per change of a batch, taken after each", "paths"),
    "stores.indexes.fulltext.FulltextIndex._lacking": _PER_NOTE_ID,
    "stores.indexes.tokenizer._Runs._old": Bound(
        "`stores.indexes.tokenizer.KEPT_RUNS`, `stores.indexes.embedder._KEPT_RUNS` of the embedder",
        "`stores.indexes.tokenizer.LONGEST_KEPT` and a number, or so many tokens, each",
    ),
    "stores.indexes.tokenizer._Runs._young": Bound(
        "`stores.indexes.tokenizer.KEPT_RUNS`, `stores.indexes.embedder._KEPT_RUNS` of the embedder",
        "`stores.indexes.tokenizer.LONGEST_KEPT` and a number, or so many tokens, each",
    ),
    "stores.indexes.leads.Leads._kept": Bound("what fits", "`stores.indexes.leads.KEPT_BYTES`"),
    "stores.indexes.linkgraph.LinkGraph._ends": Bound("one per link between notes", _IDS),
    "stores.owner_record._held": Bound("data directories of this process", "a path each"),
    "stores.indexes.linkgraph.LinkGraph._starts": Bound("one per link between notes", _IDS),
    "stores.lock.OwnerLock._holds": Bound("the folders and the database of one data directory", "fixed"),
    "stores.lock.OwnerLock._later": Bound("one per hold on a folder or database", "fixed"),
    "stores.lock._ours": Bound("data directories of this process", "a path each"),
    "stores.notes.replacing.Replacing._remote": Bound("`stores.notes.replacing._MOST_REMOTE`", "a path each"),
    "stores.notes.tree._Walk.linked": _CALL,
    "stores.notes.tree._Walk.seen": _CALL,
    "stores.indexes.transformer.Transformer._queries": Bound(
        "`stores.indexes.transformer.QUERIES_KEPT`", "1.5 kB, and a query up to 4 kB each"
    ),
    "stores.indexes.vectors.VectorIndex._notes": _PER_NOTE_ID,
    "stores.indexes.vectors.VectorIndex._rows": Bound("one per chunk", "numbers"),
    "tools.contract.admission.Admission._changing": _CONNECTIONS,
    "tools.contract.admission.Admission._reading": _CONNECTIONS,
    "tools.contract.admission.Admission._waiting": _CONNECTIONS,
    "tools.contract.arguments.ArgumentReader._paths": _FIXED,
    "tools.contract.arguments.ArgumentReader._readers": _FIXED,
    "tools.contract.arguments._common_names": _FIXED,
    "tools.contract.declaring._DECLARED": _FIXED,
    "tools.contract.declaring.all_tools": _FIXED,
    "tools.contract.fitting._Shortener.paths": Bound("20 of one answer", "200 characters each"),
    "tools.contract.registry.Tools._by_name": _FIXED,
}

_HEAD: Final = Bound("one per request", "`front.server.limits.HEAD_BYTES` for the whole head")

#: Query parameters of the HTTP port. The head of a request holds them all; only `subscriber` is stored.
QUERY_PARAMETERS: Final[Mapping[str, Bound]] = {
    "after": _HEAD,
    "agent_id": _HEAD,
    "doc_id": _HEAD,
    "limit": _HEAD,
    "of a page": _HEAD,
    "scope": _HEAD,
    "session_id": _HEAD,
    "since": _HEAD,
    "subscriber": Bound("one per request", "`front.events.ws.NAME_LENGTH` characters"),
    "tags": _HEAD,
    "titles": _HEAD,
    "types": _HEAD,
}
