"""Tasks, claims, findings and task edges as values (coordination spec)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from attrs import field, frozen

TASK_TYPES: Final = ("task", "epic", "gate")
TASK_STATUSES: Final = ("open", "completed", "cancelled")

BLOCKS: Final = "blocks"
WAITS_ON_GATE: Final = "waits_on_gate"
PARENT_CHILD: Final = "parent_child"
DISCOVERED_FROM: Final = "discovered_from"
EDGE_TYPES: Final = (BLOCKS, WAITS_ON_GATE, PARENT_CHILD, DISCOVERED_FROM)
#: Edges whose successor waits for their predecessor; together they must not form a cycle.
BLOCKING_TYPES: Final = (BLOCKS, WAITS_ON_GATE)

#: Keys that older versions kept in metadata; the graph replaced them.
FORBIDDEN_METADATA: Final = ("depends_on", "blocked_on")


@frozen(kw_only=True)
class Task:
    """One task, epic or gate."""

    id: str
    title: str
    description: str | None = None
    status: str = "open"
    task_type: str = "task"
    created_by: str
    created_at: datetime
    resolved_at: datetime | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(factory=dict)
    outcome: str | None = None

    @property
    def is_open(self) -> bool:
        """Neither completed nor cancelled."""
        return self.status == "open"


@frozen(kw_only=True)
class Claim:
    """An agent's hold on one aspect of a task, until `expires_at`; `fence` grows with every grant."""

    task_id: str
    agent: str
    aspect: str
    expires_at: datetime
    fence: int


@frozen(kw_only=True)
class Finding:
    """What an agent reports on a task; `knowledge_id` names a note."""

    id: str
    task_id: str
    agent: str
    summary: str
    knowledge_id: str | None
    created_at: datetime


@frozen(kw_only=True)
class TaskEdge:
    """A relation of two tasks; for its direction see the type (coordination spec, section 3)."""

    source: str
    target: str
    type: str
    metadata: Mapping[str, Any] = field(factory=dict)
    created_by: str
    created_at: datetime
