"""The note model: notes, documents and effective versions. All values are frozen; times are aware and in UTC.

A version stands for certain bytes. Tools write a higher one into the file with every update, but a
person's editor does not; so bytes that are not those of the last known version are at least the next:
the effective version is the file's own, and one more for each edit that did not raise it.
Two states of a note never have one version, or an agent that read the first could overwrite the second.
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

#: Characters of a person's own `id` from which on `[[...]]` may name a note by it: `202611281200`.
LEAST_LINK_ID: Final = 8

#: Frontmatter keys that Lithos defines, in the order in which new ones are written (docs/spec/notes.md §3).
OWNED_KEYS: Final = (
    "id", "title", "author", "created_at", "updated_at", "tags", "aliases", "confidence", "contributors",
    "source", "supersedes", "version", "source_url", "derived_from_ids", "expires_at", "schema_version",
    "namespace", "access_scope", "note_type", "status", "quarantine_reason", "summaries", "entities",
    "entities_extractor",
)  # fmt: skip


@frozen(kw_only=True)
class Note:
    """The metadata of one note: everything but its text (docs/spec/notes.md §3)."""

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
    #: The namespace written in the file; `None` means: follow the folder (`notes.model.paths.namespace_of`).
    namespace: str | None = None
    access_scope: str = "shared"
    note_type: str = "observation"
    status: str = "active"
    #: Reason of the quarantine; None without a given reason, and for every other status that a tool wrote.
    quarantine_reason: str | None = None
    summaries: Mapping[str, str] | None = None
    entities: tuple[str, ...] = ()
    entities_extractor: int | None = None
    #: Every top-level key Lithos does not own, as JSON-compatible values (YAML dates become ISO text).
    extra: Mapping[str, Any] = field(factory=dict)
    #: The `#tags` of the text, where they count; they are never written to the frontmatter.
    inline_tags: tuple[str, ...] = ()
    #: Why the frontmatter was not read, as `line` and `reason`: nothing but aliases comes from it then.
    frontmatter_error: Mapping[str, Any] | None = None
    #: Whether git left a conflict in the text; never written.
    has_conflict_markers: bool = False

    @property
    def all_tags(self) -> tuple[str, ...]:
        """The tags of the frontmatter, then those of the text, each once, as it is spelled first."""
        return distinct_tags(self.tags + self.inline_tags) if self.inline_tags else self.tags

    @property
    def own_id(self) -> str | None:
        """Return the `id` that a person gave the note, as text; it is not a Lithos id."""
        value = self.extra.get("id")
        return str(value).strip() if isinstance(value, str | int | float) else None

    @property
    def link_id(self) -> str | None:
        """Return the person's id if links can use it: long enough not to be a plain word."""
        own = self.own_id
        return own if own is not None and len(own) >= LEAST_LINK_ID else None

    @property
    def frontmatter_problem(self) -> str | None:
        """The `frontmatter_error` as one text that names the line."""
        error = self.frontmatter_error
        if error is None:
            return None
        line, reason = f"line {error['line']}", str(error["reason"])
        return reason if reason.startswith(line) else f"{line}: {reason}"

    def next_update(self, now: datetime) -> datetime:
        """The `updated_at` of the next version: now, or that of this one after the clock was put back."""
        return max(now, self.updated_at)

    def is_stale(self, now: datetime) -> bool:
        """Return True once `now` is past `expires_at`."""
        return self.expires_at is not None and now > self.expires_at


@frozen(kw_only=True)
class Document:
    """A note with its text: `content` is the body without frontmatter and leading H1, stripped."""

    note: Note
    content: str


def with_creation(note: Note, modified_at: datetime, *known: datetime | None) -> Note:
    """Return the note read from a file of this time, created no later than any `known` time or its update.

    A creation time in the file itself is unchanged. Only without one the time of the file was used, which
    every exchange of the file makes later.
    """
    if note.created_at != modified_at:
        return note
    created_at = min(note.updated_at, modified_at, *(each for each in known if each is not None))
    return note if created_at == modified_at else evolve(note, created_at=created_at)


def not_ahead(note: Note, modified_at: datetime, now: datetime) -> Note:
    """Return the note; where the time of its file replaces `updated_at`, that is not ahead of the clock."""
    return evolve(note, updated_at=now) if note.updated_at == modified_at > now else note


@frozen
class AssignedVersion:
    """An assigned version, and the hash of the bytes it stands for; "" for bytes of no file."""

    version: int
    digest: str


def effective_version(own: int, digest: str, last: AssignedVersion | None) -> int:
    """The version of bytes with this hash, in which the file says `own`; `last` is the newest known."""
    if last is None:
        return own
    return max(own, last.version + (digest != last.digest))


def newest(standings: Iterable[AssignedVersion | None], digest: str) -> AssignedVersion | None:
    """Return the one with the highest version; on a tie the one that stands for these bytes."""
    known = (standing for standing in standings if standing is not None)
    return max(known, key=lambda each: (each.version, each.digest == digest), default=None)


WarningKind: TypeAlias = Literal[
    "quarantined", "superseded", "suspect", "expired", "contradicted", "duplicated", "conflict_copy",
    "conflict_markers",
]  # fmt: skip


@frozen
class NoteWarning:
    """One warning about a note.

    `id` and `title` name the note that is the cause: the note itself (`quarantined`, `expired`,
    `conflict_markers`, `duplicated` or `conflict_copy`, when `reason` names files that have its id, or its
    other version), its successor (`superseded`), the nearest note of its lineage that is quarantined or
    superseded (`suspect`), or the other end of the contradiction (`contradicted`). `distance` counts the
    steps to it, 0 for the note itself.
    """

    kind: WarningKind
    id: str
    title: str
    reason: str
    distance: int
