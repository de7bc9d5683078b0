"""Values and commands of the memory actor: node statistics, receipts, enriching, retention.

It carries the commands out over `stats.db` and `edges.db` (docs/spec/memory.md §1 to §6).
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
    """Drop these receipts; the reply is their number."""

    ids: tuple[str, ...]


@frozen
class ForgetLessons(LearningCommand[None]):
    """Forget that these lessons were applied; they will not be repeated. No reply."""

    ids: tuple[str, ...]


@frozen
class ForgetJobs(LearningCommand[int]):
    """Drop jobs finished before `done_before`, and at most `most` rows queued before `queued_before`.

    The reply is the number of the latter: their attempts are exhausted.
    """

    done_before: datetime
    queued_before: datetime
    most: int


@frozen
class ForgetNotes(LearningCommand[int]):
    """Drop the statistics and marks of these deleted notes; the reply is the number of rows."""

    ids: tuple[str, ...]


@frozen(kw_only=True)
class NodeStats:
    """The statistics of a note in retrieval; the defaults are those of an unused note."""

    node_id: str
    retrieval_count: int = 0
    cited_count: int = 0
    last_retrieved_at: datetime | None = None
    last_used_at: datetime | None = None
    ignored_count: int = 0
    misleading_count: int = 0


@frozen
class FinalNode:
    """One result as stored in its receipt."""

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


#: Characters of a question, and conflicts, that a receipt keeps.
QUERY_KEPT: Final = 20_000
CONFLICTS_KEPT: Final = 200


@frozen(kw_only=True)
class Receipt:
    """Query, steps and answer of one retrieval; `namespace_filter` None means any.

    `tokens` are those of a briefing (None: not a briefing), `is_followup` marks one about changes
    since an earlier one.
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


@frozen
class RecordRetrieval(LearningCommand[dict[str, NodeStats]]):
    """Store a receipt, and count that these notes were returned.

    The reply has the former statistics, of notes that had some.
    """

    receipt: Receipt
    note_ids: tuple[str, ...] = ()


@frozen(kw_only=True)
class AskedQuestion:
    """The question that feedback is about.

    `codes` is its vector of the static tier, int8, as `embedder` made it; empty without a model. In that case
    the entries count once they are embedded, and no more is learned from them. `is_private`: its words are
    never shown.
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
    """Learn from a completed task; the reply has the notes that misled for the third time or more.

    The lists hold notes that exist and are in the receipt, except `elsewhere`: notes that were cited but
    found another way. They answer the question and are remembered for it, without any other effect.
    `namespaces` maps cited notes of both kinds to theirs.
    """

    task_id: str
    #: Effects of one id apply once, however often it is repeated; with None it is never repeated.
    id: str | None = None
    cited: tuple[str, ...] = ()
    misleading: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    namespaces: Mapping[str, str] = field(factory=dict)
    #: The receipt of the query that the notes answer; its question, and sketches of the texts of cited
    #: notes, are derived from it when the lesson is applied.
    receipt_id: str | None = None
    question: AskedQuestion | None = None
    sketches: Mapping[str, bytes] = field(factory=dict)


@frozen(kw_only=True)
class EnrichTrigger:
    """One note to enrich: `trigger_type` is an event type."""

    trigger_type: str
    node_id: str


@frozen
class Enqueue(LearningCommand[None]):
    """Put triggers into the enrich queue, durably; no reply."""

    triggers: tuple[EnrichTrigger, ...]


@frozen(kw_only=True)
class EnrichJob:
    """All waiting triggers of one note; `rows` are their row ids in the queue."""

    rows: tuple[int, ...]
    triggers: frozenset[str]
    node_id: str
    #: Attempts of the row that was tried most often, including this one.
    attempts: int = 1
    #: Time of its oldest trigger.
    waiting_since: datetime | None = None


@frozen
class ClaimJobs(LearningCommand[list[EnrichJob]]):
    """Take waiting jobs with fewer than `max_attempts` attempts; the reply is `list[EnrichJob]`.

    Claiming counts as an attempt, so that a job which ends the process is not tried forever. It reads
    at most `most` rows after row `after`, and takes all rows of the notes that begin there: a run that
    continues after the last beginning sees each note once.
    """

    max_attempts: int
    after: int = 0
    most: int | None = None


@frozen
class FinishJobs(LearningCommand[None]):
    """Mark these rows of the queue as done (`done`), or for a retry; no reply."""

    rows: tuple[int, ...]
    done: bool = True


@frozen
class ProjectionOutcome:
    """Numbers of rows with provenance_type `frontmatter` that were made, removed and repaired."""

    created: int = 0
    removed: int = 0
    resynced: int = 0

    def __add__(self, other: ProjectionOutcome) -> ProjectionOutcome:
        """Return the sum of both."""
        return ProjectionOutcome(
            self.created + other.created, self.removed + other.removed, self.resynced + other.resynced
        )


@frozen(kw_only=True)
class ProjectProvenance(LearningCommand[ProjectionOutcome]):
    """Make the `derived_from` edges of these notes match their frontmatter.

    `desired` maps a note to its namespace and its resolved sources; notes in `gone` lose theirs. `complete`
    means that `desired` is the whole corpus: rows of all other notes are removed too, except those of notes
    in `kept`, which were checked already. The reply is a `ProjectionOutcome`; `dry_run` only counts.
    """

    desired: Mapping[str, tuple[str, tuple[str, ...]]]
    gone: tuple[str, ...] = ()
    complete: bool = False
    kept: frozenset[str] = frozenset()
    dry_run: bool = False


@frozen
class RecordEntities(LearningCommand[None]):
    """Keep the entities of a note; None forgets them. No reply.

    Of entities written into the note's file only the digest `written` (`digest_entities`) is kept: as long as
    the note has exactly those, no person has chosen them.
    """

    node_id: str
    found: ExtractedEntities | None = None
    written: str = ""


@frozen
class RetrievalRecord:
    """A retrieval or a briefing: agent, question (as a digest), time, and the notes of the answer.

    `tokens` only for a briefing; `is_followup` marks a briefing about news only.
    """

    at: datetime
    agent: str
    question: str
    task_id: str | None
    notes: tuple[str, ...]
    tokens: int | None
    is_followup: bool
