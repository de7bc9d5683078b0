"""Versions of a note: the differences between two versions, and retention (docs/spec/history.md §4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from attrs import evolve, frozen

from lithos.kernel.values.errors import StorageFailed
from lithos.notes.model.note import Note

BODY: Final = "body"
PATH: Final = "path"
ADDRESS: Final = "source_url"

#: The compared properties, in order. Properties that every write changes (version, `updated_at`,
#: contributors) and properties that no write may change are left out.
_PROPERTIES: Final = (
    "title", "tags", "aliases", "status", "quarantine_reason", "note_type", "access_scope", "namespace",
    "confidence", "source", ADDRESS, "derived_from_ids", "supersedes", "expires_at", "schema_version",
    "summaries", "entities", "extra",
)  # fmt: skip
_FRONTMATTER: Final = re.compile(
    rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n.*?^(?:---|\.\.\.[ \t]*(?:\r?\n---)?)[ \t]*(?:\r?\n|\r?\Z)",
    re.DOTALL | re.M,
)
_BLANK_LINES: Final = re.compile(rb"\A(?:[ \t]*\r?\n)+")
_HEADING: Final = re.compile(rb"\A\s*#[ \t][^\n]*(?:\n|\Z)")


def changed_properties(old: Note, new: Note) -> tuple[str, ...]:
    """Return the names of the properties that differ. The texts are not compared."""
    changed = (name for name in _PROPERTIES if getattr(old, name) != getattr(new, name))
    return tuple("metadata" if name == "extra" else name for name in changed)


def have_same_body(one: bytes, other: bytes) -> bool:
    """Return whether two files have the same text below the frontmatter and the title heading."""
    return body_of(one) == body_of(other)


def head_of(data: bytes) -> bytes:
    """Return the frontmatter of a file with its delimiter lines.

    Without a frontmatter, the result is empty.
    """
    found = _FRONTMATTER.match(data)
    return data[: found.end()] if found else b""


def body_of(data: bytes) -> bytes:
    """Return the text of a file below the frontmatter and the title heading."""
    found = _FRONTMATTER.match(data)
    body = data[found.end() :] if found else data
    heading = _HEADING.match(body)
    return _BLANK_LINES.sub(b"", body[heading.end() :] if heading else body, count=1).rstrip()


#: Origins of a version. `outside` means an external edit.
CREATED: Final = "created"
UPDATED: Final = "updated"
RENAMED: Final = "renamed"
DELETED: Final = "deleted"
RESTORED: Final = "restored"
OUTSIDE: Final = "outside"
#: Origin of a version with the bytes of a conflict copy that was merged into the note.
COPY: Final = "copy"


@frozen(kw_only=True)
class VersionRow:
    """A recorded state of a note.

    `digest` is the SHA-256 hash of the file's bytes in hex, and `size` is the number of bytes. `changed`
    lists the differences from the preceding version ("body", "title", "tags" and other properties). A
    deletion has the deleted bytes, and its version is one higher. `is_undo` means that the change reverts an
    agent's change. Older rows do not have this mark. `approved_by` is the person who approved the agent's
    proposal. `row` is the position in recording order. Several rows can have the same version, such as an
    edit and a later move.
    """

    note_id: str
    version: int
    at: datetime
    agent: str
    op: str
    title: str
    path: str
    size: int
    digest: str
    changed: tuple[str, ...] = ()
    is_undo: bool = False
    approved_by: str | None = None
    row: int = 0


#: Minimum age of a version that the limit `keep_versions` counts.
COUNTED_AFTER: Final = timedelta(hours=24)
#: Maximum number of versions per note. This limit includes recent versions.
MOST_VERSIONS: Final = 100_000


@frozen(kw_only=True)
class VersionLimits:
    """The limits in the settings `history.*`. 0 means no limit."""

    keep_days: int
    keep_versions: int
    keep_deleted_days: int


@frozen
class KeptVersion:
    """The version fields that retention needs. `place` is the position in recording order."""

    place: int
    at: datetime
    is_deletion: bool


def surplus_versions(rows: Sequence[KeptVersion], now: datetime, limits: VersionLimits) -> list[int]:
    """Return the positions of the versions to delete. `rows` are all versions of one note in recording order.

    The first and the newest version of a note are never deleted, unless the newest version is an old
    deletion: then all versions are deleted. A version with a future time counts as new. Such a time is
    recorded before a clock is set back.
    """
    if not rows:
        return []
    deleted_before = before(now, limits.keep_deleted_days)
    if rows[-1].is_deletion and deleted_before is not None and rows[-1].at < deleted_before:
        return [row.place for row in rows]
    middle = rows[1:-1]
    old_before, counted = before(now, limits.keep_days), now - COUNTED_AFTER
    dropped: list[int] = []
    old, in_all = 0, 2
    for row in reversed(middle):
        is_counted = row.at < counted
        if (
            (old_before is not None and row.at < old_before)
            or (is_counted and limits.keep_versions and old >= limits.keep_versions)
            or in_all >= MOST_VERSIONS
        ):
            dropped.append(row.place)
        else:
            in_all += 1
            old += is_counted
    return dropped


def cuts(now: datetime, limits: VersionLimits) -> list[datetime]:
    """Return the times that the retention rules compare with version times, oldest first."""
    found = (before(now, limits.keep_days), before(now, limits.keep_deleted_days), now - COUNTED_AFTER)
    return sorted({each for each in found if each is not None})


def believe_order(rows: Sequence[KeptVersion], firsts: Sequence[tuple[datetime, int]]) -> list[KeptVersion]:
    """Return the versions with corrected times that agree with the recording order.

    `firsts` are pairs of a time and the position of the first version recorded after this time. A version
    recorded later is never older than this time, even if the clock showed 1970 until a time server answered.
    """
    lifted = []
    for row in rows:
        at = max((row.at, *(moment for moment, first in firsts if row.place > first)))
        lifted.append(row if at == row.at else evolve(row, at=at))
    return lifted


def before(now: datetime, days: int) -> datetime | None:
    """Return the time `days` ago. For 0 and for a time that the calendar cannot represent, return None."""
    try:
        return now - timedelta(days=days) if days else None
    except OverflowError:
        return None


class HistoryFailed(StorageFailed):
    """The database `history.db` cannot be read or written at the moment."""


@frozen(kw_only=True)
class NewVersion:
    """A version to record.

    If `data` is None, the version has the bytes of the preceding version. `before` is the state before the
    change. This state is recorded first, unless the newest kept version has the same bytes.
    """

    note_id: str
    version: int
    at: datetime
    agent: str
    op: str
    path: str
    title: str
    data: bytes | None
    changed: tuple[str, ...] = ()
    is_undo: bool = False
    approved_by: str | None = None
    before: NewVersion | None = None
    #: True if these bytes are never written to the file. A later version in the same change replaces them.
    is_passed: bool = False
