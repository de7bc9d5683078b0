"""Times in messages: ISO 8601 in UTC, with microseconds and `+00:00`."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

#: Maximum difference by which the clock may jump ahead and still count as correct. Lithos deletes rows by age
#: only if they are older than this.
SLACK: Final = timedelta(days=2)
#: Factor by which the settled time catches up if the clock is further ahead.
CATCHING_UP: Final = 24

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MONTH: Final = re.compile(r"(\d{4})-(\d{2})")


def format_time(moment: datetime) -> str:
    """`2026-01-02T03:04:05.000006+00:00`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def format_optional(moment: datetime | None) -> str | None:
    """Format a time like `format_time`. Return None for None."""
    return None if moment is None else format_time(moment)


def parse_time(text: str) -> datetime:
    """Parse a time with `Z`, with any offset, or without a zone (which means UTC). Raises `ValueError`."""
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is UTC:
        return moment
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} is out of range") from None


def parse_end(text: str) -> datetime:
    """Parse an end time like `parse_time`. A day or month without a time means its last moment in UTC.

    Raises `ValueError`.
    """
    text = text.strip()
    try:
        day = date.fromisoformat(text)
    except ValueError:
        month = _MONTH.fullmatch(text)
        if month is None:
            return parse_time(text)
        year, number = map(int, month.groups())
        first = date(year, number, 1)  # `date` raises an error for month 13, which has no last day.
        day = first.replace(day=monthrange(year, number)[1])
    return end_of_day(day)


def end_of_day(day: date) -> datetime:
    """Return the last microsecond of a day in UTC."""
    return datetime.combine(day, time.max, UTC)


def to_microseconds(moment: datetime) -> int:
    """Return a time as microseconds since 1970."""
    return (moment - EPOCH) // _MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    """Return the time for a number of microseconds since 1970."""
    return EPOCH + timedelta(microseconds=microseconds)


def from_nanoseconds(nanoseconds: int) -> datetime:
    """Convert a file time (nanoseconds since 1970) to a time in microseconds, limited to valid years."""
    try:
        return from_microseconds(nanoseconds // 1000)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if nanoseconds > 0 else datetime.min.replace(tzinfo=UTC)


def settled_time(last: datetime, elapsed: timedelta, now: datetime) -> datetime:
    """Return the time that decides whether rows are old enough to be deleted. It is never later than `now`.

    `last` was the settled time `elapsed` seconds ago on a monotonic clock. If the clock is far ahead of both,
    the clock may be wrong, or the machine was off for a long time. The settled time then catches up at
    `CATCHING_UP` times its normal speed.
    """
    ahead = now - last
    return last + ahead if ahead <= elapsed + SLACK else last + min(ahead, CATCHING_UP * elapsed)
