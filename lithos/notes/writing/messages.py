"""Messages of the writer: write requests, their reply, and the committed change that is then indexed.

In a request `None` means *keep* (on creation: the default), the empty value means *clear*. All
checks that need no other note are done before a request is made.
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
    """The file of the note is not where it was: it was moved or removed.

    The extras are those of `VersionConflict`: read the note again, and repeat.
    """

    code = VersionConflict.code


#: The status of a change that was not carried out, but waits for a person.
PROPOSED: Final = "proposed"


@frozen
class WriteOutcome:
    """The reply to an applied write request: `status` is `created`, `updated` or `deleted`.

    One that is `proposed` was not applied: it waits for a person as `proposal_id`, until `expires_at`, and
    `version` is that of the note as it stays (0: there is none).
    """

    status: Literal["created", "updated", "deleted", "proposed"]
    id: str
    path: str
    version: int
    warnings: tuple[str, ...] = ()
    #: The version with which the request was merged.
    merged_with: int | None = None
    #: Of an edit of a section: its path and hash afterwards, None when it is gone.
    section: str | None = None
    section_hash: str | None = None
    proposal_id: str | None = None
    expires_at: datetime | None = None


def not_as_promised(outcome: WriteOutcome, message: str) -> StorageFailed:
    """The refusal for a change that is in its file, but lacks something else; it names the note."""
    return StorageFailed(message, id=outcome.id, path=outcome.path, version=outcome.version)


@frozen
class CommittedChange:
    """A committed change: durable on disk and in the catalogue, still to be indexed and journalled.

    `document` is None for a removal; `vacated` is the path at which there is no note any more.
    """

    entry: Entry
    document: Document | None
    event: EventDraft
    outcome: WriteOutcome
    vacated: str | None = None


@frozen
class Publication(Command[WriteOutcome]):
    """A change and the envelopes of its messages to the indexes; the first success is enough.

    `is_reminder` marks the publisher's own note to itself that an index is repaired.
    """

    change: CommittedChange
    receipts: Sequence[Envelope[IndexMessage, Indexed]]
    is_reminder: bool = False


#: What to do where `expected_version` is not current: refuse, or merge both changes.
REFUSE: Final = "refuse"
MERGE: Final = "merge"
ON_CONFLICT: Final = (REFUSE, MERGE)


@frozen
class Approval:
    """That a change was proposed by its agent, and approved by a person."""

    proposal_id: str
    by: str


def _caller() -> Any:
    """The field that says on whose behalf a request is made."""
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
    #: As given: the decision refuses what is no number between 0 and 1.
    confidence: object = None
    source_task: str | None = None
    source_url: str | None = None
    derived_from_ids: tuple[str, ...] | None = None
    expires_at: datetime | Literal[""] | None = None
    expected_version: int | None = None
    on_conflict: str = REFUSE
    #: The file as of `expected_version`, to merge with; None: not needed, or not kept.
    base: bytes | None = field(default=None, repr=False)
    schema_version: int | None = None
    namespace: str | None = None
    access_scope: str | None = None
    note_type: str | None = None
    status: str | None = None
    summaries: Mapping[str, str] | None = None
    metadata: Mapping[str, Any] | None = None
    #: What a frontmatter in the content gives as well: further keys as they are, before `metadata`, values
    #: that are compared with the note (`notes.format.pasted.KEPT`), and keys that cannot be used.
    aliases: tuple[str, ...] | None = None
    properties: Mapping[str, Any] | None = None
    said: Mapping[str, Any] | None = None
    unused: tuple[str, ...] = ()
    by: Principal | None = _caller()


@frozen(kw_only=True)
class _OfNote(Command[Accepted]):
    """A request about one note; refused where that has another version than expected."""

    id: str
    agent: str
    expected_version: int | None = None
    by: Principal | None = _caller()
    #: Where it was a proposal.
    approval: Approval | None = None


@frozen(kw_only=True)
class PatchNote(_OfNote):
    """Change some of a note's frontmatter; its body stays as it is, byte for byte."""

    title: str | None = None
    tags: tuple[str, ...] | None = None
    status: str | None = None
    #: Why the note is quarantined; what is not, or not any more, has none.
    quarantine_reason: str | None = None
    #: The note that this one replaces.
    supersedes: str | None = None
    #: Merged per key; unlike in `WriteNote`, an empty one changes nothing.
    metadata: Mapping[str, Any] | None = None
    on_conflict: str = REFUSE
    #: As in `WriteNote`.
    base: bytes | None = field(default=None, repr=False)
    #: Found by machine, with the number of the rules that found them; () clears.
    entities: tuple[str, ...] | None = None
    entities_extractor: int | None = None
    #: The source in the hidden origin of the event: `TOOL` or `ENRICHMENT`.
    source: str = TOOL


class OutlineNeeded(LithosError):
    """The body is long, and its outline is not known: nothing was changed. Read it, then ask again."""


@frozen(kw_only=True)
class EditNote(_OfNote):
    """Change one place of a note's body, as the file is when the writer reads it; the rest of it stays.

    The writer itself parses a long body only where `is_patient` is off.
    """

    edit: SectionEdit
    is_patient: bool = True


@frozen(kw_only=True)
class DeleteNote(_OfNote):
    """Remove a note's file and everything derived from it."""

    #: The source in the hidden origin of the event: `TOOL` or `TAKING_BACK`.
    source: str = TOOL


@frozen(kw_only=True)
class RestoreNote(_OfNote):
    """Write earlier bytes of a note as its next version; a deleted note comes back at `path`.

    Only id, version and times of the bytes may change. `title` and `source_url` are what they say.
    """

    data: bytes
    #: The bytes are those of a kept version: an undo, and in somebody else's vault every restoring, writes
    #: them as they are.
    is_kept: bool = False
    path: str
    title: str
    source_url: str | None
    #: The newest version in the history, of a deleted note that of its deletion.
    newest_version: int
    #: There was no note when this was made: who brings one back knows the version after which it comes.
    is_return: bool = False
    #: When the note began, for bytes that do not say it; None: as the note says now.
    created_at: datetime | None = None
    #: What the history calls it.
    op: str = RESTORED
    #: As in `DeleteNote`.
    source: str = TOOL


@frozen(kw_only=True)
class ImportNote(Command[Accepted]):
    """Create the note with this id at `path` with the bytes of an import, or replace its bytes.

    `document` is what `data` reads as, `identified` whether it names its id itself. `expected` is the digest
    of the file that is replaced, whose next version `document` has; None creates. As among files, another
    note may have the same title or address.
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
    """Create a note that comes from another vault, with the versions that were kept of it there.

    Its bytes and its version stay as they were; of other notes no title or address may be the same.
    """

    #: In the order of recording; kept in one commit with the note's own, before its file is written.
    past: tuple[NewVersion, ...] = field(default=(), repr=False)
    #: Whether the file itself says the version, and when the note began where it does not say that.
    says_version: bool = True
    created_at: datetime | None = None


@frozen(kw_only=True)
class MoveNote(_OfNote):
    """Rename a note's file to `path`: a folder, or a file ending in `.md`.

    With `update_links` links are to be rewritten afterwards, by `RelinkNote`.
    """

    path: str
    update_links: bool = True
    #: The ids of the other notes whose links may be rewritten, as a person saw them; None: of all.
    relinks: frozenset[str] | None = None
    #: As in `DeleteNote`; the links that follow have it too.
    source: str = TOOL


class NothingToRelink(LithosError):
    """The note has no link that has to be rewritten: nothing was changed."""


@frozen(kw_only=True)
class RelinkNote(Command[Accepted]):
    """Rewrite the links of one note after a move, perhaps of itself; nothing else in it changes.

    `is_resumed`: it may have been done before the last start.
    """

    id: str
    intent: MoveIntent
    is_resumed: bool = False
    #: Whose move it is.
    by: Principal | None = None


UpdateRequest = WriteNote | PatchNote
WriteRequest = UpdateRequest | EditNote | DeleteNote | MoveNote | RelinkNote | RestoreNote | ImportNote
