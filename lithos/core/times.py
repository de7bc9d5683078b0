"""Times on the wire: ISO 8601 in UTC with microseconds and `+00:00`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_time(moment: datetime) -> str:
    """`2026-01-02T03:04:05.000006+00:00`."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def format_optional(moment: datetime | None) -> str | None:
    """As `format_time`, None staying None."""
    return None if moment is None else format_time(moment)


def parse_time(text: str) -> datetime:
    """Read `Z`, any offset, or no zone (then UTC); raises `ValueError`."""
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is UTC:
        return moment
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{text!r} is out of range") from None


def from_nanoseconds(nanoseconds: int) -> datetime:
    """Convert a file time (nanoseconds since 1970) to microseconds, clamped to the years that exist."""
    try:
        return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC) if nanoseconds > 0 else datetime.min.replace(tzinfo=UTC)
