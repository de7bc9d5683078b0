"""Versions of a note: the differences between two versions, and their retention (docs/spec/history.md §4)."""

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

#: Compared properties in this order, without properties that every write changes (version, `updated_at`,
#: contributors) or that no write may change.
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
    """Return the properties that differ. The text is not compared."""
    changed = (name for name in _PROPERTIES if getattr(old, name) != getattr(new, name))
    return tuple("metadata" if name == "extra" else name for name in changed)


def have_same_body(one: bytes, other: bytes) -> bool:
    """Return whether two files have the same text below the frontmatter and the title heading."""
    return body_of(one) == body_of(other)


def head_of(data: bytes) -> bytes:
    """Return the frontmatter of a file including its delimiter lines, or empty bytes without frontmatter."""
    found = _FRONTMATTER.match(data)
    return data[: found.end()] if found else b""


def body_of(data: bytes) -> bytes:
    """Return the text of a file below its frontmatter and its title heading."""
    found = _FRONTMATTER.match(data)
    body = data[found.end() :] if found else data
    heading = _HEADING.match(body)
    return _BLANK_LINES.sub(b"", body[heading.end() :] if heading else body, count=1).rstrip()


#: Origins of a version.
CREATED: Final = "created"
UPDATED: Final = "updated"
RENAMED: Final = "renamed"
DELETED: Final = "deleted"
RESTORED: Final = "restored"
OUTSIDE: Final = "outside"
#: The version has the bytes of a conflict copy that was merged into the note.
COPY: Final = "copy"


@frozen(kw_only=True)
class VersionRow:
    """One recorded state of a note.

    `digest` is the SHA-256 of the file's bytes in hex, `size` their number. `changed` lists the differences
    from the version before ("body", "title", "tags" and other properties). A deletion has the deleted bytes
    and a version that is one higher. `is_undo` means that the change reverts a change of an agent. Older rows
    lack this mark. `approved_by` is the person who approved the agent's proposal. `row` numbers the rows in
    the order of recording, because several rows can share a version, such as an edit and a later move.
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


#: Minimum age of a version that counts towards `keep_versions`.
COUNTED_AFTER: Final = timedelta(hours=24)
#: Maximum number of versions per note, including recent ones.
MOST_VERSIONS: Final = 100_000


@frozen(kw_only=True)
class VersionLimits:
    """The limits in `history.*`. 0 means no limit."""

    keep_days: int
    keep_versions: int
    keep_deleted_days: int


@frozen
class KeptVersion:
    """The fields of a version that retention needs. `place` is its position in the order of recording."""

    place: int
    at: datetime
    is_deletion: bool


def surplus_versions(rows: Sequence[KeptVersion], now: datetime, limits: VersionLimits) -> list[int]:
    """Return the places of the versions to delete. `rows` are all versions of one note in recorded order.

    The first and the newest version are kept. If the newest version is an old deletion, all versions are
    deleted. A version with a time in the future, left by a clock that was set back, counts as new.
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
    """Return the times before which a version is too old for one of the limits."""
    found = (before(now, limits.keep_days), before(now, limits.keep_deleted_days), now - COUNTED_AFTER)
    return sorted({each for each in found if each is not None})


def believe_order(rows: Sequence[KeptVersion], firsts: Sequence[tuple[datetime, int]]) -> list[KeptVersion]:
    """Return the versions with their times corrected to agree with the order of recording.

    `firsts` are times, each with the place of the first version recorded after it. A version recorded after
    such a time is never older than that, even if the clock was at 1970 until a time server answered.
    """
    lifted = []
    for row in rows:
        at = max((row.at, *(moment for moment, first in firsts if row.place > first)))
        lifted.append(row if at == row.at else evolve(row, at=at))
    return lifted


def before(now: datetime, days: int) -> datetime | None:
    """Return the time `days` ago, or None for 0 and for times before the calendar begins."""
    try:
        return now - timedelta(days=days) if days else None
    except OverflowError:
        return None


class HistoryFailed(StorageFailed):
    """The database `history.db` cannot be read or written at the moment."""


@frozen(kw_only=True)
class NewVersion:
    """A version to record.

    With `data` None, the version has the bytes of the version before. `before` is the state that the change
    was made from. This state is recorded first unless the newest kept version has the same bytes.
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
    #: True if the file never gets these bytes, because a later version in the same change replaces them.
    is_passed: bool = False
