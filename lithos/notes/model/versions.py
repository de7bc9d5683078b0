"""Versions of a note: the differences between two, and how long they are kept (docs/spec/history.md §4)."""

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

#: Properties in this order, without those that every write changes (version, `updated_at`, contributors), and
#: without those that no write may change.
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
    """Return the properties that differ; of the text nothing is said."""
    changed = (name for name in _PROPERTIES if getattr(old, name) != getattr(new, name))
    return tuple("metadata" if name == "extra" else name for name in changed)


def have_same_body(one: bytes, other: bytes) -> bool:
    """Return whether two files have the same text below the frontmatter and the heading that is the title."""
    return body_of(one) == body_of(other)


def head_of(data: bytes) -> bytes:
    """Return the frontmatter of a file with the lines that enclose it; empty if there is no frontmatter."""
    found = _FRONTMATTER.match(data)
    return data[: found.end()] if found else b""


def body_of(data: bytes) -> bytes:
    """Return the text of a file below its frontmatter and the heading that is its title."""
    found = _FRONTMATTER.match(data)
    body = data[found.end() :] if found else data
    heading = _HEADING.match(body)
    return _BLANK_LINES.sub(b"", body[heading.end() :] if heading else body, count=1).rstrip()


#: The origins of a version.
CREATED: Final = "created"
UPDATED: Final = "updated"
RENAMED: Final = "renamed"
DELETED: Final = "deleted"
RESTORED: Final = "restored"
OUTSIDE: Final = "outside"
#: The bytes of a conflict copy that was merged into the note.
COPY: Final = "copy"


@frozen(kw_only=True)
class VersionRow:
    """One state of a note.

    `digest` is the SHA-256 of the file's bytes in hex, `size` their number; `changed` names what differs from
    the version before ("body", "title", "tags" and other properties). A deletion has the bytes that were
    deleted, under the version they had plus one. `is_undo`: it takes back what an agent changed; older rows
    do not say it. `approved_by` is the person who approved what the agent had proposed. `row` numbers the
    rows in the order of recording: several have one version, such as an edit and a move after it.
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


#: Versions of at least this age count towards `keep_versions`.
COUNTED_AFTER: Final = timedelta(hours=24)
#: Versions of one note, younger ones included.
MOST_VERSIONS: Final = 100_000


@frozen(kw_only=True)
class VersionLimits:
    """The limits of `history.*`; 0 is without end."""

    keep_days: int
    keep_versions: int
    keep_deleted_days: int


@frozen
class KeptVersion:
    """A version as far as the retention needs it; `place` is its place in the order of recording."""

    place: int
    at: datetime
    is_deletion: bool


def surplus_versions(rows: Sequence[KeptVersion], now: datetime, limits: VersionLimits) -> list[int]:
    """Return the places of those of one note's versions that go; `rows` are all of them, in the order of
    recording.

    The first and the newest stay, unless the newest is a deletion of long ago: then all go. A version from
    the future, as a clock that was set back leaves them, is as young as can be.
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
    """Return the moments before which a version is old for one of the limits."""
    found = (before(now, limits.keep_days), before(now, limits.keep_deleted_days), now - COUNTED_AFTER)
    return sorted({each for each in found if each is not None})


def believe_order(rows: Sequence[KeptVersion], firsts: Sequence[tuple[datetime, int]]) -> list[KeptVersion]:
    """Return the versions with times that agree with the order of recording.

    `firsts` are moments, each with the place of the first version after it. A version recorded after a moment
    is not older than that, even if the clock was at 1970 until a time server answered.
    """
    lifted = []
    for row in rows:
        at = max((row.at, *(moment for moment, first in firsts if row.place > first)))
        lifted.append(row if at == row.at else evolve(row, at=at))
    return lifted


def before(now: datetime, days: int) -> datetime | None:
    """Return the moment `days` ago; None for 0, and for more days than the calendar has."""
    try:
        return now - timedelta(days=days) if days else None
    except OverflowError:
        return None


class HistoryFailed(StorageFailed):
    """`history.db` cannot be read or written now."""


@frozen(kw_only=True)
class NewVersion:
    """A version to record.

    `data` None: the bytes of the version before. `before` is the state that it was made from: it is recorded
    first unless the newest version that is kept has the same bytes.
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
    #: Its bytes are never those of the file: the file gets those of a later version with the same change.
    is_passed: bool = False
