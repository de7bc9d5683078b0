"""The note model: notes, documents and effective versions.

All values are frozen. All times are aware and in UTC.

A version identifies exact bytes. Tools write a higher version into the file with every update, but a person's
editor does not. If the bytes differ from the last known version, they get at least the next version. This
effective version is the file's own version plus one for each edit that did not raise it. Two states of a note
never share a version, because otherwise an agent that read the first could overwrite the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from attrs import evolve, field, frozen

from lithos.kernel.values.principals import UNKNOWN_AGENT
from lithos.kernel.values.times import EPOCH
from lithos.text.words.list_filters import distinct_tags

ACCESS_SCOPES: Final = ("shared", "task", "agent_private")
NOTE_TYPES: Final = ("observation", "agent_finding", "summary", "concept", "task_record", "hypothesis")
STATUSES: Final = ("active", "archived", "quarantined")

#: Minimum length of a person's own `id` (such as `202611281200`) by which `[[...]]` may refer to a note.
LEAST_LINK_ID: Final = 8

#: Frontmatter keys that Lithos defines, in the order in which Lithos writes them (docs/spec/notes.md §3).
OWNED_KEYS: Final = (
    "id", "title", "author", "created_at", "updated_at", "tags", "aliases", "confidence", "contributors",
    "source", "supersedes", "version", "source_url", "derived_from_ids", "expires_at", "schema_version",
    "namespace", "access_scope", "note_type", "status", "quarantine_reason", "summaries", "entities",
    "entities_extractor",
)  # fmt: skip


@frozen(kw_only=True)
class Note:
    """The metadata of one note, without its text (docs/spec/notes.md §3)."""

    id: str
    title: str
    author: str = UNKNOWN_AGENT
    created_at: datetime = EPOCH
    updated_at: datetime = EPOCH
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    confidence: float = 1.0
    contributors: tuple[str, ...] = ()
    source: str | None = None
    supersedes: str | None = None
    version: int = 1
    source_url: str | None = None
    derived_from_ids: tuple[str, ...] = ()
    expires_at: datetime | None = None
    schema_version: int = 1
    #: The namespace written in the file. `None` means that the folder decides
    #: (`notes.model.paths.namespace_of`).
    namespace: str | None = None
    access_scope: str = "shared"
    note_type: str = "observation"
    status: str = "active"
    #: Reason for the quarantine. None if no reason was given, or if a tool wrote another status.
    quarantine_reason: str | None = None
    summaries: Mapping[str, str] | None = None
    entities: tuple[str, ...] = ()
    entities_extractor: int | None = None
    #: The top-level keys that Lithos does not own, as JSON-compatible values. YAML dates become ISO text.
    extra: Mapping[str, Any] = field(factory=dict)
    #: Valid `#tags` in the text. They are never written to the frontmatter.
    inline_tags: tuple[str, ...] = ()
    #: `line` and `reason` of a frontmatter error. With an error, only the aliases are read from the
    #: frontmatter.
    frontmatter_error: Mapping[str, Any] | None = None
    #: True if the text contains conflict markers of git. Never written to the file.
    has_conflict_markers: bool = False

    @property
    def all_tags(self) -> tuple[str, ...]:
        """Return the tags of the frontmatter and the text without duplicates, in their first spelling."""
        return distinct_tags(self.tags + self.inline_tags) if self.inline_tags else self.tags

    @property
    def own_id(self) -> str | None:
        """Return the `id` that a person wrote into the note, as text. It is not a Lithos id."""
        value = self.extra.get("id")
        return str(value).strip() if isinstance(value, str | int | float) else None

    @property
    def link_id(self) -> str | None:
        """Return the person's id if links can use it: the id must be too long to be a plain word."""
        own = self.own_id
        return own if own is not None and len(own) >= LEAST_LINK_ID else None

    @property
    def frontmatter_problem(self) -> str | None:
        """Return `frontmatter_error` as one text that names the line, or None."""
        error = self.frontmatter_error
        if error is None:
            return None
        line, reason = f"line {error['line']}", str(error["reason"])
        return reason if reason.startswith(line) else f"{line}: {reason}"

    def next_update(self, now: datetime) -> datetime:
        """Return `updated_at` for the next version: now, or the current one if the clock was set back."""
        return max(now, self.updated_at)

    def is_stale(self, now: datetime) -> bool:
        """Return whether `now` is past `expires_at`."""
        return self.expires_at is not None and now > self.expires_at


@frozen(kw_only=True)
class Document:
    """A note with its text. `content` is the body without frontmatter and leading H1, stripped."""

    note: Note
    content: str


def with_creation(note: Note, modified_at: datetime, *known: datetime | None) -> Note:
    """Return the note with a creation time that is not later than `modified_at`, a known time or its update.

    A creation time in the file itself is unchanged. If the file has no such time, its modification time is
    used, and every replacement of the file makes this time later.
    """
    if note.created_at != modified_at:
        return note
    created_at = min(note.updated_at, modified_at, *(each for each in known if each is not None))
    return note if created_at == modified_at else evolve(note, created_at=created_at)


def not_ahead(note: Note, modified_at: datetime, now: datetime) -> Note:
    """Return the note. If the file's time replaces `updated_at`, it is limited to the current time."""
    return evolve(note, updated_at=now) if note.updated_at == modified_at > now else note


@frozen
class AssignedVersion:
    """An assigned version and the hash of its bytes, or "" if the bytes are not in a file."""

    version: int
    digest: str


def effective_version(own: int, digest: str, last: AssignedVersion | None) -> int:
    """Return the version of bytes with this hash.

    `own` is the version in the file, `last` the newest known version.
    """
    if last is None:
        return own
    return max(own, last.version + (digest != last.digest))


def newest(standings: Iterable[AssignedVersion | None], digest: str) -> AssignedVersion | None:
    """Return the item with the highest version. On a tie, prefer the one with this hash."""
    known = (standing for standing in standings if standing is not None)
    return max(known, key=lambda each: (each.version, each.digest == digest), default=None)


WarningKind: TypeAlias = Literal[
    "quarantined", "superseded", "suspect", "expired", "contradicted", "duplicated", "conflict_copy",
    "conflict_markers",
]  # fmt: skip


@frozen
class NoteWarning:
    """One warning about a note.

    `id` and `title` name the note that is the cause. For `quarantined`, `expired`, `conflict_markers`,
    `duplicated` and `conflict_copy` this is the note itself. For `duplicated`, `reason` names the other files
    with its id, and for `conflict_copy` the files with its other version. For `superseded` the cause is the
    successor, for `suspect` the nearest note of the lineage that is quarantined or superseded, and for
    `contradicted` the other note of the contradiction. `distance` is the number of steps to it, 0 for the
    note itself.
    """

    kind: WarningKind
    id: str
    title: str
    reason: str
    distance: int
