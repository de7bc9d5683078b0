"""Task tables that an import writes, and the command that announces imported tasks."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from attrs import frozen

from lithos.events.model.imported_rows import Value, carried_table
from lithos.kernel.values.principals import UNKNOWN_AGENT
from lithos.tasks.model.task_commands import TaskCommand

TASKS: Final = carried_table(
    "tasks",
    "coordination.db",
    f"id= title= description status=open task_type=task created_by={UNKNOWN_AGENT} created_at:time= tags=[] "
    "outcome resolved_at:time metadata={}",
)
TASK_EDGES: Final = carried_table(
    "task_edges",
    "coordination.db",
    f"from_task_id= to_task_id= type= metadata={{}} created_by={UNKNOWN_AGENT} created_at:time=",
    keys=3,
)
CLAIMS: Final = carried_table(
    "claims", "coordination.db", "task_id= aspect= agent= claimed_at:time= expires_at:time=", keys=2
)
FINDINGS: Final = carried_table(
    "findings", "coordination.db", "id= task_id= agent= summary= knowledge_id:note created_at:time="
)

#: Imported tables, in import order.
CARRIED: Final = (TASKS, TASK_EDGES, CLAIMS, FINDINGS)


@frozen(kw_only=True)
class SettleTasks(TaskCommand[int]):
    """Announce the imported tasks that are ready. All their predecessors must be imported.

    The reply is the number of ready tasks.
    """

    task_ids: tuple[str, ...]


def is_running(expires_at: Value, now: datetime) -> bool:
    """Return whether a claim with this end has not expired yet."""
    return isinstance(expires_at, str) and datetime.fromisoformat(expires_at) > now
