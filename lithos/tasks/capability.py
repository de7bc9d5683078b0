"""Tasks as a capability."""

from __future__ import annotations

from lithos.kernel.capability import Capability
from lithos.kernel.state import Gauge, Health
from lithos.services.tasks.board import Board
from lithos.services.tasks.coordination import Coordination
from lithos.services.tasks.impact import Impact
from lithos.tasks.state import count_tasks, look_at_coordination, measure_claims

TASKS = Capability(
    name="tasks",
    makers=(Coordination, Impact, Board),
    health=(Health("coordination", 8, look_at_coordination),),
    statistics=(count_tasks,),
    gauges=(Gauge(70, measure_claims),),
)
