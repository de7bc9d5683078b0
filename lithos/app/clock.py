"""The clock of the whole server."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Now, aware and in UTC."""
    return datetime.now(UTC)
