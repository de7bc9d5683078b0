"""Which versions of a note are kept, and for how long (docs/spec/history.md §4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from attrs import frozen

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
    """The places of those of one note's versions that go; `rows` are all of them, in the order of recording.

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


def before(now: datetime, days: int) -> datetime | None:
    """The moment so many days ago; None for 0, and for more than the calendar has."""
    try:
        return now - timedelta(days=days) if days else None
    except OverflowError:
        return None
