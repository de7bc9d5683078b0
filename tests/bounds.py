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


#: Bounds of many, by the words that stand for them below; `ids` is a size.
_SHARED: Final = {
    "fixed": Bound("fixed when the server starts", "fixed"),
    "a call": Bound("a call's, ends with it", "what the call was given or found"),
    "a connection": Bound("one per open connection or request", "some kilobytes each"),
    "a note": Bound("one per note", "what `core.limits` keeps of a file"),
    "a note id": Bound("one per note", "some 300 bytes each"),
    "a file": Bound("one per note file", "some 300 bytes each"),
}
_IDS: Final = "some 300 bytes each"


def _read(table: str) -> dict[str, Bound]:
    """The bounds of a table: lines of `<owner>: <names> | <rows> | <size>`, or a word of `_SHARED` for both.

    A constant of the owner's own module begins with a dot. An indented line goes on with the one above.
    """
    found: dict[str, Bound] = {}
    for line in table.strip().replace("\n    ", " ").splitlines():
        named, rows, *size = line.split(" | ")
        owner, _, names = named.partition(": ")
        module = ".".join(part for part in owner.split(".") if part.islower())
        said = [rows, *(_IDS if each == "ids" else each for each in size)]
        own = [each.replace("`.", f"`{module}.") for each in said]
        found.update(
            dict.fromkeys((f"{owner}.{name}" for name in names.split()), _SHARED.get(rows) or Bound(*own))
        )
    return found


#: `<database>: <tables>`.
TABLES: Final[Mapping[str, Bound]] = _read("""
coordination: access_log | `events.audit_rows`, `events.audit_days`; those that upstream stored stay | some
    200 bytes each
attachments: files parts | `actors.attaching.attaching.MOST_IN_ALL` parts, one row per file of the folder |
    `core.attachments.kinds.MOST_TEXT` of a file
attachments: meta | fixed
coordination: agents | `services.tasks.retention.AGENTS`, idle ones a year, more only with something to their
    name | `services.tasks.retention.AGENT_BYTES`
coordination: citations | a user's: at most 1,000 per completed task, which is kept | ids
coordination: completions | a user's: one per completed task that cited, which is kept | an id and a name
coordination: claim_ends | one per claim, goes with it | an id and an aspect twice
coordination: claims | `actors.coordinating.task_claims.ASPECTS` per open task; 30 days after their end |
    names
coordination: counters meta | fixed
coordination: cursors | `services.tasks.retention.CURSORS`, idle ones a year | a name each
coordination: events | `events.journal_size` | 2,560 times `events.journal_size`
coordination: findings task_edges tasks | a user's: tasks and findings are kept | `tools.contract.bounds` for
    every text
coordination: proposals | `core.proposals.MOST_PENDING` wait, `core.proposals.MOST_DECIDED` of the last
    `core.proposals.KEPT_FOR` are kept | two files of a note
coordination: requests | `core.tasks.requests.MOST_KEPT`, a week | `core.tasks.requests.LONGEST_KEPT`
coordination: imported_rows | one per row that an import carried over | ids
coordination: lessons | `stores.coordination.tasks.KEPT`, dropped when learned | 2 lists of ids each
coordination: note_creations note_ids note_versions | a note id
coordination: own_notes | a user's: one per file that a person keeps | a path each
coordination: note_intents | versions a note got since the manifest was written | ids
coordination: read_counts | one per note, and `services.tasks.retention.GONE_NOTES` | ids
coordination: ready_tasks | one per task that is ready | ids
coordination: timers | one per open timer gate | ids
coordination: unreadable_times | times of an older file that were none, once | a value each
edges: applied_lessons | one per lesson that waits | ids
edges: edges | a user's, or one per pair of notes cited together | 64 kB of evidence each
edges: imported_rows | one per row that an import carried over | ids
edges: outbox | edges whose event is not journalled yet | the event
history: contents | at most one per version, and 49 that others are differences to |
    `storage.max_content_size_bytes`
history: meta | fixed
history: notes | one per note, gone ones `history.keep_deleted_days` | ids
history: versions | `history.keep_versions`, `history.keep_days`, `core.history.versions.MOST_VERSIONS` per
    note | what `core.limits` keeps of a path and a title
leads: leads | one per note | `core.learning.lead.MOST_STEMS` numbers
manifest: files | a note
manifest: meta reading | fixed
stats: applied_lessons | one per lesson that waits | ids
stats: enrich_queue | changes of `services.enrich.worker.DONE`, given up ones of
    `services.enrich.worker.GIVEN_UP` | ids
stats: extracted_entities | one per note, and `services.enrich.worker.GONE_NOTES` |
    `core.text.entities.MOST_ENTITIES` names of `core.text.entity_text.LONGEST`
stats: imported_rows | one per row that an import carried over | ids
stats: node_stats | one per note, and `services.enrich.worker.GONE_NOTES` | ids
stats: question_memory | `lcma.questions_kept`, dropped with their note |
    `core.learning.questions.QUESTION_KEPT` and a vector each
stats: question_texts | one per note with remembered questions | 4 bytes times
    `core.learning.questions.SKETCHED`
stats: receipts | `lcma.receipts_kept`, and those of open tasks | `core.learning.memory.QUERY_KEPT` and 2 kB
    each
""")

#: `<module>.<class>: <attributes>` of each container that a method may fill, `<module>: <names>` of others.
CONTAINERS: Final[Mapping[str, Bound]] = _read("""
actors.attaching.attaching.Attaching: _again _due _gathered _names files ids numbers | a file of the folder
    | a row of its table each
actors.attaching.captions.Captions: _made_of | an image of the folder | ten ids of notes each
actors.attaching.extractor._Taking: _held | a call
actors.coordinating.broadcaster.Broadcaster: _subscriptions | `events.max_sse_clients` and
    `events.max_ws_clients` | their queues
actors.coordinating.broadcaster.Broadcaster: _watchers | fixed
actors.coordinating.proposals.ProposalBoard: _changed | those of one commit | as rows
actors.coordinating.proposals.ProposalBoard: _notes | the notes that had a proposal since the start | ids
actors.coordinating.broadcaster.Broadcaster: _sizes recent | `events.event_buffer_size` | `.RING_BYTES`
actors.coordinating.broadcaster.Subscription: _send events | `events.subscriber_queue_size` | shared events
actors.coordinating.coordinator.Coordinator: _audit | `.AUDIT_BACKLOG` | ids
actors.coordinating.coordinator.Coordinator: _reads | one per note, and `services.tasks.retention.GONE_NOTES`
    | ids
actors.coordinating.coordinator.Coordinator: _touched | agents seen within half a second | names
actors.coordinating.coordinator.Coordinator: _unwritten | notes written while the journal cannot be, which
    `/health` tells | the events
actors.coordinating.coordinator.Coordinator: agents | as the table `agents`, looked at early when much is
    registered | `services.tasks.retention.AGENT_BYTES`
actors.coordinating.task_choice.Marks: _places | `.KINDS` | the aspect and the filter of a call each
actors.indexing.coverage.Coverage: _lacking _stamps _todo | a note id
actors.indexing.models.Loaded: _held | weak: models in use, two of a kind at most for a vault | a model
actors.indexing.ports.VectorQueries: _quick _waiting | searches under way | their vectors
actors.kit.Mailbox: _send inbox | the capacity that each actor gives | the messages, whose askers wait
actors.remembering.actor.Memory: _undelivered | rows of the outbox | the events
actors.watching.guard.DeletionGuard: _dropped | removals within `.WINDOW` | two numbers each
actors.watching.guard.DeletionGuard: _kept | a note id
actors.watching.pending.Pending: _compare _missing _touched | a file
actors.watching.settling.Taking: _doubtful _empty | a file
actors.watching.survey._Search: found nameless read | a call
actors.watching.watcher.Watcher: _failures | `.FAILURES` | a number each
actors.watching.watcher.Watcher: _troubles | one per kind of trouble | a sentence each
actors.writing.editing.Outlines: _kept | `.KEPT` | `.KEPT_CHARACTERS` of bodies in all, or one body
actors.writing.keeper.Keeper: _waiting | `.CAPACITY` | paths; the files are on the disk
actors.writing.outside_changes.Taken: again changes copies displaced present rewritten versions | a call
actors.writing.publisher.Publisher: _unjournalled _unrecorded _withheld | a note
actors.writing.recording.Recorder: _confirmed _refused | changes within `.TIDY_AFTER` | a number each
actors.writing.writer._Job: followers | `.BATCH` | the batch's own requests
actors.writing.writer._Job: reals | a path of the change, and a note whose links it rewrites | paths
actors.allocator: _glibc _holding | fixed
app.evaluation.asking._Asking: _known | `core.evaluation.questions.MOST_QUESTIONS` times twice
    `core.evaluation.questions.MOST_NAMES` | the file, `core.evaluation.questions.LARGEST_FILE`
app.evaluation.asking._Asking: degraded | fixed
app.vaults.Vaults: _movings | two of each pair of vaults that are served | fixed
app.vaults.Vaults: hosted | the vaults of the configuration | fixed
catalogue.catalogue.Catalogue: when_removed | fixed
catalogue.catalogue.Catalogue: _by_id | a note
catalogue.catalogue.Catalogue: _by_path _by_serial _own_ids broken | a note id
catalogue.catalogue.Catalogue: doubles skipped | a file
stores.manifest.Manifest: former_ids | a file that another Lithos read, until the next start | its path and id
catalogue.first_looks.FirstLooks: _is_over | fixed
catalogue.first_looks.FirstLooks: _looks | `.MOST_LOOKS`, and none once a start is complete | some 2 KB each
catalogue.facets.Facets: _late _late_serials | a note id
catalogue.facets.Titles: _blocks | a note
catalogue.lineage.Lineage: _causes _doubtful | a note id
catalogue.note_graph.NoteGraph: _notes | a note
catalogue.note_graph.NoteGraph: _targets | one per link target | ids
catalogue.note_records.KeptEntities: _found | one per note, and `services.enrich.worker.GONE_NOTES` |
    `core.text.entities.MOST_ENTITIES` names of `core.text.entity_text.LONGEST`
catalogue.note_records.NoteRecords: _own | a user's: one per file that a person keeps | a path each
catalogue.note_records.NoteRecords: _creations _ids _intents _paths _undecided _urgent _urgent_intents
    _versions | a note id
catalogue.relations.Multimap: _items | one per slug, address, link target or tag, and what notes say:
    `core.limits.ITEMS` each | ids
catalogue.relations.Relations: leaves | `.MOST_LEAVES` | an id each
catalogue.relations.Relations: quarantined | a note id
catalogue.relations.TypedEdges: _dependents _edges _opposed _sources | one per edge of a lineage, and per
    unresolved contradiction | ids
catalogue.spelling.NewPaths: _files _folders | `actors.writing.writer.BATCH` | paths and their folders
catalogue.turns.Turns: _folders _placed | a note
catalogue.relinking._Planning: _concerned _meant _pages _sources | a call
front.bridge.bridge.Bridge: _calls | a connection
front.bridge.bridge.Bridge: _outgoing _sender | `.WRITTEN_AHEAD` | answers
front.bridge.link.OwnerLink: _waiting | a connection
front.console.formats: make_environment | fixed
front.console.pages.overview.Happenings: _kept | `.MOST_KEPT` | a sentence of HTML, cut texts in it
front.console.pages.tasks.BoardPages: _drafts | `.MOST_DRAFTS` | `.LONGEST_DRAFT` a field
front.console.pages.overview.Row: folded | `.MOST_FOLDED` | a sentence each
front.console.pages.undo.UndoPages: _reports | `.MOST_REPORTS` | the results of a request
front.console.pages.review.ReviewPages: _reports | `.MOST_REPORTS` | sentences on `.MOST_PICKED` proposals
front.console.pages.review.ReviewPages: _drafts | `.MOST_DRAFTS` | the text of a form, at most
    `front.server.limits.FORM_BYTES`
front.console.several.SeveralConsole: _kept | a configured vault each | numbers and sentences
front.console.sessions.Session: _notices | `.MOST_NOTICES` | sentences
front.console.sessions.Session: submissions | `.MOST_SUBMISSIONS` | a key and a location
front.console.sessions.Sessions: _by_id | `.MOST_SESSIONS` | sessions
front.console.sessions.Sessions: _ended | `.MOST_SESSIONS` | a sentence each
front.console.visits.Visit: entered | a configured vault each | a reference to a session
front.console.visits.Visits: _by_id | `.MOST_SESSIONS` | visits, a principal a vault in each
front.mcp.session.SdkTransports: _openers | a connection
front.mcp.session._Unanswered: _ids _listening | a connection
front.server.access: _is_loopback _normal_name | `.MOST_NAMES` | `front.server.limits.HEAD_BYTES` at most
front.server.admissions.Admissions: _open | a connection
front.server.admissions.WrongTokens: _by_address | `.MOST_ADDRESSES` | an address and three numbers each
front.server.connections.Connections: _open | a connection
front.server.exchanges.Exchanges: _open | a connection
metrics.Metrics: _begun | fixed: the tools, kinds, modes and mailboxes | fixed
metrics.Metrics: _counters _histograms _series | fixed instruments with bounded labels | fixed
metrics._Gauges: samples | a call
services.importing.dead_links.LinksOfImport: _links _lost | `.MOST_LINKS`, for an import | a target each
services.importing.importing._Session: notes | one per imported note of the kind; one session at a time | ids
services.importing.importing._Session: own_ids paths | one per note that the import makes | a number
services.importing.importing._Session: seen | `.MOST_SEEN` | a number
services.importing.importing._Session: titles | `.MOST_TITLES` | ids
services.importing.records.Remembered: renamed | `.MOST_REMEMBERED`, until the import ends | 2 ids each
services.importing.records.Remembered: taken | tasks of the source whose ids are taken here, until the import
    ends | ids
services.importing.records.Remembered: tasks | `.MOST_REMEMBERED`, until the import ends | ids
services.importing.run.Report: attachments carried counted edges results tables | fixed
services.importing.run.Report: listed | `.MOST_LISTED` of each kind | `.LONGEST` a text
services.keyring.TokenRing: _by_digest _by_principal _scopes | `stores.tokens.MOST_TOKENS` | names of
    `stores.tokens.LONGEST_AGENT` and a hash each
services.notes.moving.Moving: _receive _send | `.CAPACITY` | a request each
services.notes.resources.Changes: _followers | sessions, `front.mcp.resources.MOST_LISTENERS` | theirs
services.notes.resources.Follower: _due _followed _told | `.MOST_URIS` | `.LONGEST_URI` each
services.notes.frames.Frames: _known _shared | `.KEPT` | a folder's path,
    `core.text.hidden.COUNTED` numbers at either end
services.notes.undo.UndoRun: _began _settled _tried | a call
services.oauth.authorization.AuthorizationServer: _answers | `.MOST_ANSWERS`, a minute | two tokens each
services.oauth.authorization.AuthorizationServer: _registered | `.MOST_ADDRESSES` of `.MOST_REGISTRATIONS`
    times | an address and a number each
services.oauth.documents.Documents: _kept | `.MOST_KEPT` | what `core.oauth.redirects` takes of one
services.oauth.foreign.ForeignTokens: _keys | `.MOST_KEYS` | what an issuer publishes in `.LARGEST`
services.oauth.foreign.ForeignTokens: _known | `.MOST_KNOWN` | a name and a hash each
services.retrieve.evidence._Looked: scores | a call
services.retrieve.scouts.Report: failed fired found | a call
services.search.graph_search.Centrality: _places _scores | a note id
services.search.asked.Asked: _kept | `.MOST_ASKED` | `.LONGEST_ASKED` characters each
services.search.neighbourhood.Drawings: _kept | `.KEPT` | places of `.MOST_NOTES` each
services.state.Gauges: _statuses | one for each component of `/health` | some bytes each
services.state.Gauges: _watched | fixed
services.tasks.agents.Cursors: _moving | `events.max_ws_clients` | a name each
services.tasks.board._Tree: _seen | a call
services.tasks.requests.Requests: _running | a call
services.tasks.event_stream.EventStream: _pending | `.PAGE` | `stores.coordination.store.PAGE_BYTES` and one
    event
services.upkeep.care.Round: troubles | a call
services.upkeep.samples.Samples: _kept | `.KEPT` | some numbers each
services.vaults.retrieving._Meeting: _arrived drawn | a call
stores.carrying.RowMerger: _uniques created updated | a call
stores.importing.basic_memory._Names: others permalinks projects stems | one per file | a name each
stores.importing.conversations._Reading: _ids _slugs | one per conversation of an export, ends with the import
    | 12 bytes each, some 100 in a set
stores.importing.logseq.LogseqGraph: _blocks _days | `._MOST`, ends with the import | a name each
stores.importing.logseq.LogseqGraph: _namespaced _stems | one per file, ends with the import | its name
stores.indexes.chunk_rows.ChunkRows: _free | gaps between chunks in the index | a number each
stores.indexes.fulltext.FulltextIndex: _lacking | a note id
stores.indexes.leads.Leads: _kept | what fits | `.KEPT_BYTES`
stores.indexes.linkgraph.LinkGraph: _ends _starts | one per link between notes | ids
stores.indexes.tokenizer._Runs: _old _young | `.KEPT_RUNS`, `stores.indexes.embedder._KEPT_RUNS` of the
    embedder | `.LONGEST_KEPT` and a number, or so many tokens, each
stores.indexes.transformer.Transformer: _queries | `.QUERIES_KEPT` | 1.5 kB, and a query up to 4 kB each
stores.indexes.note_means.NoteMeans: _places | a note id
stores.indexes.vectors.VectorIndex: _notes | a note id
stores.indexes.vectors.VectorIndex: _rows | one per chunk | numbers
stores.learning.question_matrix.QuestionMatrix: _free _row_of | `lcma.questions_kept` | a number each
stores.learning.question_matrix.QuestionMatrix: _notes _numbers | notes with questions since the last load |
    ids
stores.learning.questions.QuestionRows: touched | entries changed by one batch, taken after each | a number
    each
stores.lock.OwnerLock: _folders | the data directory and the vault | fixed
stores.notes.files.NoteFiles: _kept | one per change of a batch, taken after each | paths
stores.notes.replacing.Replacing: _remote | `._MOST_REMOTE` | a path each
stores.notes.tree._Walk: linked seen | a call
tools.contract.admission.Admission: _changing _reading _waiting | a connection
tools.contract.arguments.ArgumentReader: _also _paths _readers | fixed
tools.contract.declaring: _DECLARED _declared | fixed
tools.contract.fitting._Shortener: paths | 20 of one answer | 200 characters each
tools.contract.registry.Tools: _by_name | fixed
tools.contract.rows: _writer_of | fixed
""")

_HEAD: Final = Bound("one per request", "`front.server.limits.HEAD_BYTES` for the whole head")

_IN_HEAD: Final = (
    "after", "agent_id", "doc_id", "limit", "of a page", "scope",
    "session_id", "since", "tags", "titles", "types",
)  # fmt: skip
#: Query parameters of the HTTP port. The head of a request holds them all; only `subscriber` is stored.
QUERY_PARAMETERS: Final[Mapping[str, Bound]] = {
    **dict.fromkeys(_IN_HEAD, _HEAD),
    "subscriber": Bound("one per request", "`front.events.ws.NAME_LENGTH` characters"),
}
