"""Messages of the writer: write requests, their reply, and the committed change that is then indexed.

In a request, `None` means *keep* (on creation: the default), and the empty value means *clear*. All checks
that need no other note are done before a request is made.
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
from lithos.notes.catalogue.catalogue import Entry
from lithos.notes.files.displaced import MoveIntent
from lithos.notes.indexing_messages import Indexed, IndexMessage
from lithos.notes.model.note import Document
from lithos.notes.model.versions import RESTORED, NewVersion
from lithos.text.outline.section_edit import SectionEdit


class NoteBusy(StorageFailed):
    """Another program is writing the note's file: nothing was changed; the same request may succeed soon."""


class NoteAway(NoteBusy):
    """The file of the note is not at its path: it was moved or removed.

    The extras are those of `VersionConflict`: read the note again, and repeat.
    """

    code = VersionConflict.code


#: The status of a change that was not applied, but waits for a person.
PROPOSED: Final = "proposed"


@frozen
class WriteOutcome:
    """The reply to an applied write request: `status` is `created`, `updated` or `deleted`.

    A `proposed` change was not applied: it waits for a person as `proposal_id`, until `expires_at`, and
    `version` is the note's current one (0 if the note does not exist).
    """

    status: Literal["created", "updated", "deleted", "proposed"]
    id: str
    path: str
    version: int
    warnings: tuple[str, ...] = ()
    #: The version with which the request was merged.
    merged_with: int | None = None
    #: For an edit of a section: its path and hash afterwards, None if the section is gone.
    section: str | None = None
    section_hash: str | None = None
    proposal_id: str | None = None
    expires_at: datetime | None = None


def not_as_promised(outcome: WriteOutcome, message: str) -> StorageFailed:
    """Return the refusal for a change that is in its file, but is incomplete otherwise; it names the note."""
    return StorageFailed(message, id=outcome.id, path=outcome.path, version=outcome.version)


@frozen
class CommittedChange:
    """A committed change: durable on disk and in the catalogue, still to be indexed and journalled.

    `document` is `None` for a removal; `vacated` is a path that has no note any more.
    """

    entry: Entry
    document: Document | None
    event: EventDraft
    outcome: WriteOutcome
    vacated: str | None = None


@frozen
class Publication(Command[WriteOutcome]):
    """A change and the envelopes of its messages to the indexes; the first success is enough.

    `is_reminder` marks the publisher's own message that an index is repaired.
    """

    change: CommittedChange
    receipts: Sequence[Envelope[IndexMessage, Indexed]]
    is_reminder: bool = False


#: Handling of an outdated `expected_version`: refuse, or merge both changes.
REFUSE: Final = "refuse"
MERGE: Final = "merge"
ON_CONFLICT: Final = (REFUSE, MERGE)


@frozen
class Approval:
    """That a change was proposed by its agent, and approved by a person."""

    proposal_id: str
    by: str


def _caller() -> Any:
    """Return the field for the agent or person on whose behalf a request is made."""
    return field(factory=ACTING.get, repr=False)


#: The reply to an accepted request: await it for the moment an index has the change and it is journalled.
Accepted = Envelope[Publication, WriteOutcome]


@frozen(kw_only=True)
class WriteNote(Command[Accepted]):
    """Create a note (`id` None), which needs title and content, or update one; `expires_at` "" clears."""

    agent: str
    title: str | None = None
    content: str | None = None
    id: str | None = None
    path: str | None = None
    tags: tuple[str, ...] | None = None
    #: The value as given: the writer refuses it unless it is a number between 0 and 1.
    confidence: object = None
    source_task: str | None = None
    source_url: str | None = None
    derived_from_ids: tuple[str, ...] | None = None
    expires_at: datetime | Literal[""] | None = None
    expected_version: int | None = None
    on_conflict: str = REFUSE
    #: The file in `expected_version`, to merge with; None: not needed, or not kept.
    base: bytes | None = field(default=None, repr=False)
    schema_version: int | None = None
    namespace: str | None = None
    access_scope: str | None = None
    note_type: str | None = None
    status: str | None = None
    summaries: Mapping[str, str] | None = None
    metadata: Mapping[str, Any] | None = None
    #: Further values from a frontmatter in the content: further keys before `metadata`, values to compare
    #: with the note (`notes.format.pasted.KEPT`), and keys that cannot be used.
    aliases: tuple[str, ...] | None = None
    properties: Mapping[str, Any] | None = None
    said: Mapping[str, Any] | None = None
    unused: tuple[str, ...] = ()
    by: Principal | None = _caller()


@frozen(kw_only=True)
class _OfNote(Command[Accepted]):
    """A request about one note; refused if the note's version differs from the expected one."""

    id: str
    agent: str
    expected_version: int | None = None
    by: Principal | None = _caller()
    #: The approval, if the change was a proposal.
    approval: Approval | None = None


@frozen(kw_only=True)
class PatchNote(_OfNote):
    """Change some frontmatter values of a note; its body stays unchanged, byte for byte."""

    title: str | None = None
    tags: tuple[str, ...] | None = None
    status: str | None = None
    #: Why the note is quarantined; only quarantined notes have a reason.
    quarantine_reason: str | None = None
    #: The note that this one replaces.
    supersedes: str | None = None
    #: Merged per key; unlike in `WriteNote`, an empty mapping changes nothing.
    metadata: Mapping[str, Any] | None = None
    on_conflict: str = REFUSE
    #: As in `WriteNote`.
    base: bytes | None = field(default=None, repr=False)
    #: Found automatically, with the version of the rules that found them; () clears.
    entities: tuple[str, ...] | None = None
    entities_extractor: int | None = None
    #: The source in the hidden origin of the event: `TOOL` or `ENRICHMENT`.
    source: str = TOOL


class OutlineNeeded(LithosError):
    """The body is long, and its outline is unknown: nothing was changed. Read the outline, then retry."""


@frozen(kw_only=True)
class EditNote(_OfNote):
    """Change one place of a note's body, in the state that the writer reads; the rest is unchanged.

    The writer parses a long body itself only if `is_patient` is off.
    """

    edit: SectionEdit
    is_patient: bool = True


@frozen(kw_only=True)
class DeleteNote(_OfNote):
    """Delete a note's file and everything derived from it."""

    #: The source in the hidden origin of the event: `TOOL` or `TAKING_BACK`.
    source: str = TOOL


@frozen(kw_only=True)
class RestoreNote(_OfNote):
    """Write earlier bytes of a note as its next version; a deleted note comes back at `path`.

    Only id, version and times of the bytes may change. `title` and `source_url` are the values in the
    bytes.
    """

    data: bytes
    #: The bytes are those of a kept version. An undo, and every restore in a served vault, writes them
    #: unchanged.
    is_kept: bool = False
    path: str
    title: str
    source_url: str | None
    #: The newest version in the history; for a deleted note that of its deletion.
    newest_version: int
    #: The note did not exist when this request was made: a client that restores it knows the version it
    #: follows.
    is_return: bool = False
    #: When the note was created, for bytes without that time; None: the note's current value.
    created_at: datetime | None = None
    #: Operation that the history records.
    op: str = RESTORED
    #: As in `DeleteNote`.
    source: str = TOOL


@frozen(kw_only=True)
class ImportNote(Command[Accepted]):
    """Create the note with this id at `path` with the bytes of an import, or replace its bytes.

    `document` is the parsed `data`, and `identified` whether the data contains its id. `expected` is the
    digest of the file to replace, whose next version `document` has; None creates a note. As for files,
    another note may have the same title or address.
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
    """Create a note that comes from another vault, with its kept versions.

    Its bytes and its version stay unchanged; no other note may have its title or address.
    """

    #: In recording order; kept in one commit with the note's own version, before its file is written.
    past: tuple[NewVersion, ...] = field(default=(), repr=False)
    #: Whether the file itself contains the version, and when the note was created if the file does not say.
    says_version: bool = True
    created_at: datetime | None = None


@frozen(kw_only=True)
class MoveNote(_OfNote):
    """Rename a note's file to `path`: a folder, or a file ending in `.md`.

    With `update_links`, links are rewritten afterwards, by `RelinkNote`.
    """

    path: str
    update_links: bool = True
    #: The ids of the other notes whose links may be rewritten, as a person saw them; None: of all.
    relinks: frozenset[str] | None = None
    #: As in `DeleteNote`; the rewritten links have it too.
    source: str = TOOL


class NothingToRelink(LithosError):
    """The note has no link to rewrite: nothing was changed."""


@frozen(kw_only=True)
class RelinkNote(Command[Accepted]):
    """Rewrite the links of one note after a move, perhaps its own; nothing else in it changes.

    `is_resumed`: it may have been done before the last start.
    """

    id: str
    intent: MoveIntent
    is_resumed: bool = False
    #: The agent that moved the note.
    by: Principal | None = None


UpdateRequest = WriteNote | PatchNote
WriteRequest = UpdateRequest | EditNote | DeleteNote | MoveNote | RelinkNote | RestoreNote | ImportNote
