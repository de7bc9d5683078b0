"""Checks of argument values that need no note: times, enumerations, free-form objects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from lithos.core.errors import InvalidInput
from lithos.core.model import OWNED_KEYS
from lithos.core.times import parse_time

#: What other readers of YAML and JSON can hold.
LARGEST_INTEGER = 2**63 - 1


def read_time(name: str, text: str | None) -> datetime | None:
    """An optional time; raises `InvalidInput`."""
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError:
        raise InvalidInput(
            f"{name} is not a time: {text!r}. Write it like 2026-01-31T12:00:00Z (no zone means UTC)."
        ) from None


def read_expiry(
    ttl_hours: float | None, expires_at: str | None, now: datetime
) -> datetime | Literal[""] | None:
    """When a note goes stale: None keeps, "" clears. `ttl_hours` is checked already."""
    if ttl_hours is not None:
        try:
            return now + timedelta(hours=ttl_hours)
        except OverflowError:
            raise InvalidInput(
                f"ttl_hours is too large: {ttl_hours}. Use expires_at or a smaller one."
            ) from None
    if expires_at == "":
        return ""
    return read_time("expires_at", expires_at)


def check_ttl(ttl_hours: float | None, expires_at: str | None) -> None:
    """One of the two at most, and a time to live above zero."""
    if ttl_hours is not None and expires_at is not None:
        raise InvalidInput("Provide either ttl_hours or expires_at, not both.")
    if ttl_hours is not None and not (math.isfinite(ttl_hours) and ttl_hours > 0):
        raise InvalidInput(f"ttl_hours must be a number above 0, not {ttl_hours}.")


def check_choice(name: str, value: str | None, choices: Sequence[str]) -> None:
    """None or one of the choices."""
    if value is not None and value not in choices:
        raise InvalidInput(f"{name} must be one of {', '.join(choices)}; not {value!r}.")


def check_summaries(summaries: Mapping[str, Any] | None) -> None:
    """Only `short` and `long`, both texts."""
    for key, value in (summaries or {}).items():
        if key not in ("short", "long"):
            raise InvalidInput(f"summaries has the unknown key {key!r}. Its keys are short and long.")
        if not isinstance(value, str):
            raise InvalidInput(f"summaries[{key!r}] must be a text.")


def check_metadata(metadata: Mapping[str, Any] | None) -> None:
    """Keys that Lithos does not own itself."""
    for key in metadata or {}:
        if not key.strip():
            raise InvalidInput("metadata has a blank key. Give every entry a name.")
        if key in OWNED_KEYS:
            raise InvalidInput(
                f"metadata must not contain {key!r}, which Lithos keeps itself. Use the parameter of that "
                "name if there is one, or another key."
            )


def check_schema_version(version: int | None) -> None:
    """What a file can hold and every reader can read: 64 bits."""
    if version is not None and abs(version) > LARGEST_INTEGER:
        raise InvalidInput("schema_version is too large. Use a small whole number; 1 is usual.")


def unique(values: Sequence[str] | None) -> tuple[str, ...] | None:
    """The values trimmed, blank and repeated ones dropped, order kept; None stays None."""
    if values is None:
        return None
    return tuple(dict.fromkeys(text for value in values if (text := value.strip())))
