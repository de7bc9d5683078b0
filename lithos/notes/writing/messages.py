"""Messages of the writer: write requests, replies, and the committed changes to index.

In a request, `None` means *keep* (for a new note: use the default), and the empty value means *clear*. Checks
that do not depend on other notes are made before a request is created.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

from attrs import field, frozen

from lithos.kernel.actors.mailboxes import Envelope
from lithos.kernel.values.errors import LithosError, StorageFailed, VersionConflict
from lithos.kernel.values.events import TOOL, EventDraft
from lithos.kernel.values.messages import Command
from lithos.kernel.values.principals import ACTING, Principal
from lithos.kernel.values.projects import WORKING_IN
from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.files.displaced import MoveIntent
from lithos.notes.indexing_messages import Indexed, IndexMessage
from lithos.notes.model.note import Document
from lithos.notes.model.versions import RESTORED, NewVersion
from lithos.text.outline.section_edit import SectionEdit


class NoteBusy(StorageFailed):
    """Another program is writing the note's file. Nothing was changed.

    A retry of the same request may succeed soon.
    """


class NoteAway(NoteBusy):
    """The note's file is not at its path, because it was moved or removed.

    Read the note again and retry. Extras: those of `VersionConflict`.
    """

    code = VersionConflict.code


#: Status of a change that was not applied because it needs a person's approval.
PROPOSED: Final = "proposed"


@frozen
class WriteOutcome:
    """The reply to an applied write request. `status` is `created`, `updated` or `deleted`.

    A change with the status `proposed` is not applied. It waits for a person's approval as `proposal_id`
    until `expires_at`. Its `version` is the note's current version, or 0 if the note does not exist.
    """

    status: Literal["created", "updated", "deleted", "proposed"]
    id: str
    path: str
    version: int
    warnings: tuple[str, ...] = ()
    #: The version that the request was merged with, or None.
    merged_with: int | None = None
    #: For an edit of a section: the path and the hash of the section after the edit, or None if the section
    #: is gone.
    section: str | None = None
    section_hash: str | None = None
    proposal_id: str | None = None
    expires_at: datetime | None = None


def not_as_promised(outcome: WriteOutcome, message: str) -> StorageFailed:
    """Return the error for a change that is stored in its file but not completed.

    The error contains the id and the path of the note.
    """
    return StorageFailed(message, id=outcome.id, path=outcome.path, version=outcome.version)


@frozen
class CommittedChange:
    """A change that is stored on disk and in the catalogue, but not yet indexed and journalled.

    If the note was removed, `document` is `None`. `vacated` is a path that no longer has a note.
    """

    entry: Entry
    document: Document | None
    event: EventDraft
    outcome: WriteOutcome
    vacated: str | None = None


@frozen
class Publication(Command[WriteOutcome]):
    """A change with its messages to the indexes. It is sufficient that one index applies the change.

    `is_reminder` marks a message that the publisher sends to itself after an index is repaired.
    """

    change: CommittedChange
    receipts: Sequence[Envelope[IndexMessage, Indexed]]
    is_reminder: bool = False


#: How to handle an outdated `expected_version`: refuse the change, or merge the two changes.
REFUSE: Final = "refuse"
MERGE: Final = "merge"
ON_CONFLICT: Final = (REFUSE, MERGE)


@frozen
class Approval:
    """The record of an approval: the agent proposed the change, and a person approved it."""

    proposal_id: str
    by: str


def _caller() -> Any:
    """Return an attrs field for the agent or person on whose behalf a request is made."""
    return field(factory=ACTING.get, repr=False)


#: The reply to an accepted request. It is complete when an index has the change and the change is journalled.
Accepted = Envelope[Publication, WriteOutcome]


@frozen(kw_only=True)
class WriteNote(Command[Accepted]):
    """Request to create a note (`id` is None) with title and content, or to update a note.

    If `expires_at` is "", the field is cleared.
    """

    agent: str
    title: str | None = None
    content: str | None = None
    id: str | None = None
    path: str | None = None
    tags: tuple[str, ...] | None = None
    #: The value that the client sent. The writer accepts only a number between 0 and 1.
    confidence: object = None
    source_task: str | None = None
    source_url: str | None = None
    derived_from_ids: tuple[str, ...] | None = None
    expires_at: datetime | Literal[""] | None = None
    expected_version: int | None = None
    on_conflict: str = REFUSE
    #: The file in the version `expected_version`, for a merge. None if no merge is needed or the version was
    #: not kept.
    base: bytes | None = field(default=None, repr=False)
    schema_version: int | None = None
    namespace: str | None = None
    access_scope: str | None = None
    note_type: str | None = None
    status: str | None = None
    summaries: Mapping[str, str] | None = None
    metadata: Mapping[str, Any] | None = None
    #: Project of the note. "" stands for no project. `working_in` is the project of a new note for which the
    #: caller names no project at all.
    project: str | None = None
    working_in: str | None = field(factory=WORKING_IN.get, repr=False)
    #: More values from a frontmatter in the content. `properties` are keys to store unless `metadata` sets
    #: them, `said` are values to compare with the note (`notes.format.pasted.KEPT`), and `unused` are
    #: unusable keys.
    aliases: tuple[str, ...] | None = None
    properties: Mapping[str, Any] | None = None
    said: Mapping[str, Any] | None = None
    unused: tuple[str, ...] = ()
    by: Principal | None = _caller()


@frozen(kw_only=True)
class _OfNote(Command[Accepted]):
    """Base class of requests about one note.

    A request is refused if the note does not have the expected version.
    """

    id: str
    agent: str
    expected_version: int | None = None
    by: Principal | None = _caller()
    #: The approval of the change, if it was a proposal.
    approval: Approval | None = None


@frozen(kw_only=True)
class PatchNote(_OfNote):
    """Request to change some frontmatter values of a note. The body stays unchanged, byte for byte."""

    title: str | None = None
    tags: tuple[str, ...] | None = None
    status: str | None = None
    #: Reason for the quarantine. Only quarantined notes have a reason.
    quarantine_reason: str | None = None
    #: Id of the note that this note replaces.
    supersedes: str | None = None
    #: Metadata to merge key by key. An empty mapping changes nothing, unlike in `WriteNote`.
    metadata: Mapping[str, Any] | None = None
    on_conflict: str = REFUSE
    #: The file in the version `expected_version`, as in `WriteNote`.
    base: bytes | None = field(default=None, repr=False)
    #: Extracted entities, and the version of the extraction rules. () clears the entities.
    entities: tuple[str, ...] | None = None
    entities_extractor: int | None = None
    #: The source that the hidden origin of the event records: `TOOL` or `ENRICHMENT`.
    source: str = TOOL


class OutlineNeeded(LithosError):
    """The outline of a long body is unknown.

    Nothing was changed. Read the outline, then retry.
    """


@frozen(kw_only=True)
class EditNote(_OfNote):
    """Request to change one place of a note's body. The change applies to the state that the writer reads.

    If `is_patient` is False, the writer parses a long body itself.
    """

    edit: SectionEdit
    is_patient: bool = True


@frozen(kw_only=True)
class DeleteNote(_OfNote):
    """Request to delete a note's file and all data derived from the note."""

    #: The source that the hidden origin of the event records: `TOOL` or `TAKING_BACK`.
    source: str = TOOL


@frozen(kw_only=True)
class RestoreNote(_OfNote):
    """Request to write earlier bytes of a note as its next version.

    A deleted note is created again at `path`.

    Only the id, the version and the times in the bytes may change. `title` and `source_url` are the values in
    the bytes.
    """

    data: bytes
    #: True if the bytes are those of a kept version. An undo writes such bytes unchanged, and so does every
    #: restore in a served vault.
    is_kept: bool = False
    path: str
    title: str
    source_url: str | None
    #: The newest version in the history. For a deleted note, this is the version of the deletion.
    newest_version: int
    #: True if the note was already deleted when this request was made. Otherwise a deletion since then is a
    #: version conflict.
    is_return: bool = False
    #: Creation time of the note, if the bytes do not contain a creation time. None means the note's current
    #: value.
    created_at: datetime | None = None
    #: The operation that is recorded in the history.
    op: str = RESTORED
    #: The source that the hidden origin of the event records, as in `DeleteNote`.
    source: str = TOOL


@frozen(kw_only=True)
class ImportNote(Command[Accepted]):
    """Request to write imported bytes: create the note with this id at `path`, or replace the note's bytes.

    `document` is the parsed `data`, and `identified` means that the data contains the id. `expected` is the
    digest of the file to replace, and the version in `document` is the next version of this file. If
    `expected` is None, a note is created. Another note may have the same title or address.
    """

    id: str
    agent: str
    path: str
    data: bytes = field(repr=False)
    document: Document = field(repr=False)
    identified: bool = True
    expected: str | None = None
    by: Principal | None = _caller()


@frozen(kw_only=True)
class TakeOverNote(ImportNote):
    """Request to create a note that comes from another vault, together with its kept versions.

    The bytes and the version of the note do not change. No other note may have its title or address.
    """

    #: The versions in recorded order. They are committed together with the note's own version, before its
    #: file is written.
    past: tuple[NewVersion, ...] = field(default=(), repr=False)
    #: Whether the file contains the version. `created_at` is the creation time if the file does not contain
    #: one.
    says_version: bool = True
    created_at: datetime | None = None


@frozen(kw_only=True)
class MoveNote(_OfNote):
    """Request to rename a note's file to `path`, which is a folder or a file name that ends in `.md`.

    If `update_links` is set, links are rewritten after the move by `RelinkNote`.
    """

    path: str
    update_links: bool = True
    #: Ids of the notes whose links may be rewritten. These are the notes that a person saw before the move.
    #: None means all notes.
    relinks: frozenset[str] | None = None
    #: The source that the hidden origin of the event records, as in `DeleteNote`. It also applies to the
    #: rewritten links.
    source: str = TOOL


class NothingToRelink(LithosError):
    """The note has no links to rewrite. Nothing was changed."""


@frozen(kw_only=True)
class RelinkNote(Command[Accepted]):
    """Request to rewrite the links of one note after a move. Nothing else in the note changes.

    The note may be the moved note itself. `is_resumed` means that the links may already have been rewritten
    before the last start.
    """

    id: str
    intent: MoveIntent
    is_resumed: bool = False
    #: The agent or person that moved the note.
    by: Principal | None = None


UpdateRequest = WriteNote | PatchNote
WriteRequest = UpdateRequest | EditNote | DeleteNote | MoveNote | RelinkNote | RestoreNote | ImportNote
