"""Values and commands of the memory actor: note statistics, receipts, enrichment and retention.

The memory actor runs the commands on `stats.db` and `edges.db` (docs/spec/memory.md §1 to §6).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from attrs import field, frozen

from lithos.kernel.values.messages import Command, R_co
from lithos.notes.model.entities import ExtractedEntities


class LearningCommand(Command[R_co]):
    """A command to the memory actor."""

    __slots__ = ()


@frozen
class ForgetReceipts(LearningCommand[int]):
    """Delete these receipts. The reply is the number of deleted receipts."""

    ids: tuple[str, ...]


@frozen
class ForgetLessons(LearningCommand[None]):
    """Delete the records that these lessons were applied. The lessons will not be repeated. No reply."""

    ids: tuple[str, ...]


@frozen
class ForgetJobs(LearningCommand[int]):
    """Delete old jobs and rows.

    Jobs must have finished before `done_before`. At most `most` rows that were queued before `queued_before`
    are deleted.

    The rows queued before `queued_before` have used up their attempts. The reply is the number of these rows.
    """

    done_before: datetime
    queued_before: datetime
    most: int


@frozen
class ForgetNotes(LearningCommand[int]):
    """Delete the statistics and marks of deleted notes. The reply is the number of deleted rows."""

    ids: tuple[str, ...]


@frozen(kw_only=True)
class NodeStats:
    """The retrieval statistics of a note. The defaults are those of an unused note."""

    node_id: str
    retrieval_count: int = 0
    cited_count: int = 0
    last_retrieved_at: datetime | None = None
    last_used_at: datetime | None = None
    ignored_count: int = 0
    misleading_count: int = 0


@frozen
class FinalNode:
    """A retrieval result as its receipt stores it."""

    id: str
    reasons: tuple[str, ...] = ()
    scouts: tuple[str, ...] = ()


@frozen
class SurfacedConflict:
    """A contradiction that a retrieval showed."""

    edge_id: str
    from_id: str
    to_id: str
    conflict_state: str | None


#: Maximum characters of the question in a receipt, and maximum number of conflicts in it.
QUERY_KEPT: Final = 20_000
CONFLICTS_KEPT: Final = 200


@frozen(kw_only=True)
class Receipt:
    """The query, the steps and the answer of one retrieval. `namespace_filter` None means all namespaces.

    `tokens` is the token count of a briefing, otherwise None. `is_followup` marks a briefing about changes
    since an earlier briefing.
    """

    id: str
    ts: datetime
    query: str
    limit: int
    namespace_filter: tuple[str, ...] | None = None
    scouts_fired: tuple[str, ...] = ()
    candidates_considered: int = 0
    final_nodes: tuple[FinalNode, ...] = ()
    conflicts_surfaced: tuple[SurfacedConflict, ...] = ()
    surface_conflicts: bool = False
    temperature: float = 0.5
    terrace_reached: int = 1
    agent_id: str | None = None
    task_id: str | None = None
    tokens: int | None = None
    is_followup: bool = False
    #: Project of the call.
    project: str | None = None


@frozen
class RecordRetrieval(LearningCommand[dict[str, NodeStats]]):
    """Store a receipt, and count one retrieval for each returned note.

    The reply contains the former statistics of the notes that had stored statistics.
    """

    receipt: Receipt
    note_ids: tuple[str, ...] = ()


@frozen(kw_only=True)
class AskedQuestion:
    """The question to which feedback refers.

    `codes` is the int8 vector of the question in the static tier, made by `embedder`. It is empty without a
    model. The entries then count only after they are embedded, and nothing else is learned from them. With
    `is_private`, the words are never shown.
    """

    text: str
    digest: str
    codes: bytes = b""
    embedder: str = ""
    theta: float = 1.0
    agent_id: str | None = None
    is_private: bool = False


@frozen(kw_only=True)
class ApplyFeedback(LearningCommand[tuple[str, ...]]):
    """Learn from a completed task. The reply lists the notes that misled for at least the third time.

    The lists contain existing notes from the receipt. The exception is `elsewhere`, with cited notes that the
    agent found in another way. They are remembered as answers to the question, without any other effect.
    `namespaces` maps all cited notes to their namespaces.
    """

    task_id: str
    #: Id of the feedback. With it, the effects apply only once, however often the command is repeated. A
    #: command without an id is never repeated.
    id: str | None = None
    cited: tuple[str, ...] = ()
    misleading: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    namespaces: Mapping[str, str] = field(factory=dict)
    #: Receipt of the answered query. When the lesson is applied, the receipt provides the question, and the
    #: texts of the cited notes are sketched.
    receipt_id: str | None = None
    question: AskedQuestion | None = None
    sketches: Mapping[str, bytes] = field(factory=dict)


@frozen(kw_only=True)
class EnrichTrigger:
    """A note to enrich. `trigger_type` is the type of an event."""

    trigger_type: str
    node_id: str


@frozen
class Enqueue(LearningCommand[None]):
    """Add triggers durably to the enrich queue. No reply."""

    triggers: tuple[EnrichTrigger, ...]


@frozen(kw_only=True)
class EnrichJob:
    """The waiting triggers of one note. `rows` are their row ids in the queue."""

    rows: tuple[int, ...]
    triggers: frozenset[str]
    node_id: str
    #: Highest number of attempts among the rows, including the current attempt.
    attempts: int = 1
    #: Time of the oldest trigger.
    waiting_since: datetime | None = None


@frozen
class ClaimJobs(LearningCommand[list[EnrichJob]]):
    """Claim waiting jobs that had fewer than `max_attempts` attempts. The reply is `list[EnrichJob]`.

    A claim counts as an attempt, so that a job that kills the process is not tried forever. The command reads
    at most `most` rows after row `after`. For every note whose first row is among them, it claims all rows.
    If a run continues after the last first row, it sees each note once.
    """

    max_attempts: int
    after: int = 0
    most: int | None = None


@frozen
class FinishJobs(LearningCommand[None]):
    """Mark queue rows as done (`done`), or for a retry. No reply."""

    rows: tuple[int, ...]
    done: bool = True


@frozen
class ProjectionOutcome:
    """The numbers of created, deleted and repaired rows with provenance_type `frontmatter`."""

    created: int = 0
    removed: int = 0
    resynced: int = 0

    def __add__(self, other: ProjectionOutcome) -> ProjectionOutcome:
        """Return the sum of both outcomes."""
        return ProjectionOutcome(
            self.created + other.created, self.removed + other.removed, self.resynced + other.resynced
        )


@frozen(kw_only=True)
class ProjectProvenance(LearningCommand[ProjectionOutcome]):
    """Make the `derived_from` edges of notes match their frontmatter.

    `desired` maps each note to its namespace and resolved sources. Notes in `gone` lose their edges.
    `complete` means that `desired` covers all notes. In that case, rows of all other notes are deleted,
    except for the notes in `kept`, which were already checked. The reply is a `ProjectionOutcome`. With
    `dry_run`, rows are only counted.
    """

    desired: Mapping[str, tuple[str, tuple[str, ...]]]
    gone: tuple[str, ...] = ()
    complete: bool = False
    kept: frozenset[str] = frozenset()
    dry_run: bool = False


@frozen
class RecordEntities(LearningCommand[None]):
    """Store the entities of a note. If they are None, delete the stored entities. No reply.

    If the entities were written into the file of the note, only the digest `written` (`digest_entities`) is
    stored. As long as the note has exactly these entities, no person has chosen them.
    """

    node_id: str
    found: ExtractedEntities | None = None
    written: str = ""


@frozen
class RetrievalRecord:
    """A retrieval or briefing: its agent, the digest of its question, its time, and the notes in its answer.

    `tokens` is set only for a briefing. `is_followup` marks a briefing that contains only news.
    """

    at: datetime
    agent: str
    question: str
    task_id: str | None
    notes: tuple[str, ...]
    tokens: int | None
    is_followup: bool
