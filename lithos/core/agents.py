"""Agents and the access log as values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from attrs import field, frozen

UNKNOWN_AGENT: Final = "unknown"
READ: Final = "read"
SEARCH_RESULT: Final = "search_result"


@frozen(kw_only=True)
class Agent:
    """A self-reported agent."""

    id: str
    first_seen_at: datetime
    last_seen_at: datetime
    name: str | None = None
    type: str | None = None
    metadata: Mapping[str, Any] = field(factory=dict)


@frozen
class AuditRow:
    """One access to a note: `operation` is `read` or `search_result`."""

    agent_id: str
    doc_id: str
    operation: str
    timestamp: datetime
