"""Tasks as a capability."""

from __future__ import annotations

from lithos.kernel.capability import Capability, Link, Pages
from lithos.services.tasks.board import Board
from lithos.services.tasks.coordination import Coordination
from lithos.services.tasks.impact import Impact

TASKS = Capability(
    name="tasks",
    makers=(Coordination, Impact, Board),
    pages=Pages(
        modules=("lithos.front.console.pages.tasks",), links=(Link(6, "Tasks", "/console/tasks", "t"),)
    ),
)
