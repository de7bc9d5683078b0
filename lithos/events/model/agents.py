"""Value types for agents and their note accesses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from attrs import field, frozen

from lithos.kernel.values.limits import json_bytes

READ: Final = "read"
SEARCH_RESULT: Final = "search_result"


@frozen(kw_only=True)
class Agent:
    """An agent as it described itself."""

    id: str
    name: str | None = None
    type: str | None = None
    first_seen_at: datetime
    last_seen_at: datetime
    metadata: Mapping[str, Any] = field(factory=dict)
    #: Time at which the agent was retired. None means that it is active.
    archived_at: datetime | None = None


def size_of(agent: Agent) -> int:
    """Return the approximate size in bytes of an agent, in memory and in the database."""
    texts = len(agent.id) + len(agent.name or "") + len(agent.type or "")
    return 500 + texts + (json_bytes(agent.metadata) if agent.metadata else 0)


@frozen
class AuditRow:
    """One access to a note. `operation` is `read` or `search_result`. `project` is that of the call."""

    agent_id: str
    doc_id: str
    operation: str
    timestamp: datetime
    project: str | None = None
