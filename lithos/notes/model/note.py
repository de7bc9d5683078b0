"""The note model: notes, documents and effective versions.

All values are frozen. All times are timezone-aware and in UTC.

A version identifies exact bytes. Each update by a tool writes a higher version into the file, but a person's
editor does not. Bytes that differ from the last known version therefore get at least the next version number.
This effective version is the version in the file plus one for each edit that did not raise it. Two different
states of a note never have the same version. Otherwise an agent that read the first state could overwrite the
second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from attrs import evolve, field, frozen

from lithos.kernel.values.principals import UNKNOWN_AGENT
from lithos.kernel.values.times import EPOCH, format_time
from lithos.text.words.list_filters import distinct_tags

ACCESS_SCOPES: Final = ("shared", "task", "agent_private")
NOTE_TYPES: Final = ("observation", "agent_finding", "summary", "concept", "task_record", "hypothesis")
STATUSES: Final = ("active", "archived", "quarantined")

#: Minimum length of an `id` that a person wrote (such as `202611281200`) for use in `[[...]]` links.
LEAST_LINK_ID: Final = 8

#: Frontmatter keys that Lithos defines, in the order in which Lithos writes the keys (docs/spec/notes.md §3).
OWNED_KEYS: Final = (
    "id", "title", "author", "created_at", "updated_at", "tags", "aliases", "confidence", "contributors",
    "source", "supersedes", "version", "source_url", "derived_from_ids", "expires_at", "schema_version",
    "namespace", "access_scope", "note_type", "status", "quarantine_reason", "summaries", "entities",
    "entities_extractor",
)  # fmt: skip


@frozen(kw_only=True)
class Note:
    """The metadata of a note, without its text (docs/spec/notes.md §3)."""

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
    #: The namespace that is written in the file. `None` means that the folder determines the namespace
    #: (`notes.model.paths.namespace_of`).
    namespace: str | None = None
    access_scope: str = "shared"
    note_type: str = "observation"
    status: str = "active"
    #: Reason for the quarantine. The value is None if no reason was given or if a tool wrote another status.
    quarantine_reason: str | None = None
    summaries: Mapping[str, str] | None = None
    entities: tuple[str, ...] = ()
    entities_extractor: int | None = None
    #: Top-level frontmatter keys that Lithos does not define, as JSON-compatible values. YAML dates are
    #: converted to ISO text.
    extra: Mapping[str, Any] = field(factory=dict)
    #: Valid `#tags` in the text. These tags are never written to the frontmatter.
    inline_tags: tuple[str, ...] = ()
    #: The `line` and the `reason` of a frontmatter error. If there is an error, only the aliases are read
    #: from the frontmatter.
    frontmatter_error: Mapping[str, Any] | None = None
    #: True if the text contains Git conflict markers. This flag is never written to the file.
    has_conflict_markers: bool = False

    @property
    def all_tags(self) -> tuple[str, ...]:
        """Return the tags of frontmatter and text without duplicates.

        If a tag has several spellings, the first spelling is used.
        """
        return distinct_tags(self.tags + self.inline_tags) if self.inline_tags else self.tags

    @property
    def own_id(self) -> str | None:
        """Return the `id` that a person wrote into the note, as text.

        The person's `id` is not the Lithos id of the note.
        """
        value = self.extra.get("id")
        return str(value).strip() if isinstance(value, str | int | float) else None

    @property
    def link_id(self) -> str | None:
        """Return the id that a person wrote if links can use the id.

        Short ids are excluded, because they may be plain words.
        """
        own = self.own_id
        return own if own is not None and len(own) >= LEAST_LINK_ID else None

    @property
    def frontmatter_problem(self) -> str | None:
        """Return `frontmatter_error` as a text with the line number, or None if there is no error."""
        error = self.frontmatter_error
        if error is None:
            return None
        line, reason = f"line {error['line']}", str(error["reason"])
        return reason if reason.startswith(line) else f"{line}: {reason}"

    def next_update(self, now: datetime) -> datetime:
        """Return the `updated_at` of the next version.

        The next `updated_at` is `now`, or the current `updated_at` if the clock was set back.
        """
        return max(now, self.updated_at)

    def is_stale(self, now: datetime) -> bool:
        """Return whether `now` is past `expires_at`."""
        return self.expires_at is not None and now > self.expires_at


@frozen(kw_only=True)
class Document:
    """A note with its text. `content` is the stripped body, without frontmatter and leading H1."""

    note: Note
    content: str


def with_creation(note: Note, modified_at: datetime, *known: datetime | None) -> Note:
    """Return the note with a creation time that is not later than its update time or the `known` times.

    A creation time in the file itself is not changed. If the file has no creation time, the file's
    modification time is used instead. Each replacement of the file would make this time later.
    """
    if note.created_at != modified_at:
        return note
    created_at = min(note.updated_at, modified_at, *(each for each in known if each is not None))
    return note if created_at == modified_at else evolve(note, created_at=created_at)


def current_of(note: Note) -> dict[str, Any]:
    """Return the extras of a `VersionConflict` that describe the current note: its version and time."""
    return {"current_version": note.version, "current_updated_at": format_time(note.updated_at)}


def not_ahead(note: Note, modified_at: datetime, now: datetime) -> Note:
    """Return the note with an `updated_at` that is not in the future.

    Only an `updated_at` that was taken from the file's modification time is limited to `now`.
    """
    return evolve(note, updated_at=now) if note.updated_at == modified_at > now else note


@frozen
class AssignedVersion:
    """An assigned version and the hash of the version's bytes. The hash is "" if no file has these bytes."""

    version: int
    digest: str


def effective_version(own: int, digest: str, last: AssignedVersion | None) -> int:
    """Return the effective version of the bytes with the hash `digest`.

    `own` is the version in the file, and `last` is the newest known version.
    """
    if last is None:
        return own
    return max(own, last.version + (digest != last.digest))


def newest(standings: Iterable[AssignedVersion | None], digest: str) -> AssignedVersion | None:
    """Return the item with the highest version.

    If several items have this version, an item with the hash `digest` is preferred.
    """
    known = (standing for standing in standings if standing is not None)
    return max(known, key=lambda each: (each.version, each.digest == digest), default=None)


WarningKind: TypeAlias = Literal[
    "quarantined", "superseded", "suspect", "expired", "contradicted", "duplicated", "conflict_copy",
    "conflict_markers",
]  # fmt: skip


@frozen
class NoteWarning:
    """A warning about a note.

    `id` and `title` name the note that causes the warning. For `quarantined`, `expired`, `conflict_markers`,
    `duplicated` and `conflict_copy`, this is the note itself. For `duplicated`, `reason` lists the other
    files with the note's id. For `conflict_copy`, `reason` lists the files with another version of the note.
    For `superseded`, the cause is the successor. For `suspect`, the cause is the nearest quarantined or
    superseded note of the lineage. For `contradicted`, the cause is the contradicting note. `distance` is the
    number of steps to the cause, or 0 for the note itself.
    """

    kind: WarningKind
    id: str
    title: str
    reason: str
    distance: int
