"""Tool for the list of projects. It is specified in docs/spec/projects.md §8."""

from __future__ import annotations

from lithos.kernel.parts import Parts
from lithos.server.tools.declaring import OWN, Answer, tool
from lithos.server.tools.fitting import CuttableAnswer
from lithos.server.tools.serialization import row_of
from lithos.upkeep.service.project_counts import COMMON, ProjectCounter


@tool("lithos_projects", OWN, "RI", place=54, is_heavy=True, paged=CuttableAnswer(rows=("projects",)))
class ProjectsTool:
    """List the projects of the notes and tasks, with their counts."""

    async def answer(self, using: Parts) -> Answer:
        counts = await using.get(ProjectCounter).count()
        common = next((each for each in counts if each.project == COMMON), None)
        return {
            "projects": [row_of(each) for each in counts if each is not common],
            "common": {"notes": common.notes if common else 0, "tasks": common.tasks if common else 0},
        }
