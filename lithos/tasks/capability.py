"""The registration of the tasks capability."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from lithos.events.journal.messages import make_id
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.capability import Capability, NavigationLink, Pages, Retention
from lithos.kernel.parts import Parts
from lithos.kernel.state import Gauge, HealthCheck
from lithos.kernel.values.errors import AmbiguousIdPrefix, TaskNotFound
from lithos.server.tools.ports import TaskIds
from lithos.tasks.board.task_board import TaskBoard
from lithos.tasks.model.task import ClaimTimes
from lithos.tasks.model.task_commands import DropClaims
from lithos.tasks.resources import TaskResources
from lithos.tasks.rows.task_tables import TASK_TABLES
from lithos.tasks.rows.tasks import TaskRows
from lithos.tasks.service.board import BoardReading
from lithos.tasks.service.coordination import Coordination
from lithos.tasks.service.impact import Impact
from lithos.tasks.service.open_work import OpenWork
from lithos.tasks.service.running_claims import Claims
from lithos.tasks.settings import CoordinationConfig
from lithos.tasks.state import count_tasks, look_at_coordination, measure_claims

#: Period after the end of a claim until it is deleted, and maximum number of claims per deletion.
CLAIMS_ENDED: Final = timedelta(days=30)
AT_ONCE: Final = 100


def make_task_board(journal: CoordinationStore, coordination: CoordinationConfig) -> TaskBoard:
    """Return the task board, which runs task commands."""
    times = ClaimTimes(
        coordination.claim_default_ttl_minutes,
        coordination.claim_max_ttl_minutes,
        coordination.max_attempts,
        coordination.retry_minutes,
    )
    return TaskBoard(journal.written(TaskRows), times, make_id, strict=coordination.strict)


def drop_claims(now: datetime) -> DropClaims:
    """Return a command that deletes a limited number of claims that ended long ago."""
    return DropClaims(now - CLAIMS_ENDED, AT_ONCE)


async def has_task(server: Parts, thing: str) -> bool:
    """Return whether a task has this id, or an id that begins with this text."""
    try:
        await server.get(Coordination).get(thing)
    except TaskNotFound:
        return False
    except AmbiguousIdPrefix:
        return True
    return True


def make_task_ids(coordination: Coordination) -> TaskIds:
    """Return the port with which the tool registry finds the tasks named in a call."""
    return TaskIds(coordination.identify)


TASKS = Capability(
    name="tasks",
    makers=(
        make_task_board,
        Coordination,
        make_task_ids,
        Impact,
        BoardReading,
        Claims,
        OpenWork,
        TaskResources,
    ),
    pages=Pages(modules=("lithos.tasks.pages",), links=(NavigationLink(6, "Tasks", "/console/tasks", "t"),)),
    resources=(TaskResources,),
    tools=(
        "lithos.tasks.tools_rows",
        "lithos.tasks.tools",
        "lithos.tasks.tools_agents",
        "lithos.tasks.tools_graph",
    ),
    holds=has_task,
    boards=(TaskBoard,),
    tables=(TASK_TABLES,),
    retention=(Retention("claims", drop_claims, AT_ONCE),),
    health=(HealthCheck("coordination", 8, look_at_coordination),),
    statistics=(count_tasks,),
    gauges=(Gauge(70, measure_claims),),
)
