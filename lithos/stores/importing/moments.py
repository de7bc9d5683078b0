"""Dates as sources write them: ISO 8601 with and without zone, a date alone, Unix time of any unit."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any, Final

from lithos.core.times import parse_time

#: From so many on a Unix time is in milliseconds, microseconds, nanoseconds: in seconds the first is 5138 AD.
_UNITS: Final = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))


def read_moment(value: Any) -> datetime | None:
    """The aware time that a value says, without a zone in UTC; None when it says none that can be read."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _of_number(float(value))
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        number = float(text) if len(text) > 8 or "." in text else math.nan  # 20240115 is a date
    except ValueError:
        number = math.nan
    if math.isfinite(number) and not text.isascii():
        return None
    if math.isfinite(number):
        return _of_number(number)
    try:
        return parse_time(text)
    except (ValueError, OverflowError):
        return None


def _of_number(number: float) -> datetime | None:
    if not math.isfinite(number) or number <= 0:
        return None
    for least, unit in _UNITS:
        if number >= least:
            number /= unit
            break
    try:
        return datetime.fromtimestamp(number, UTC)
    except (ValueError, OverflowError, OSError):
        return None
