"""The projects whose notes and tasks a briefing shows (docs/spec/projects.md §5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from lithos.kernel.values.projects import (
    ALL_PROJECTS,
    PROPERTY,
    ProjectFilter,
    projects_of,
    read_project,
    same_project,
)
from lithos.tasks.model.task import Task


@frozen(kw_only=True)
class ProjectScope:
    """The projects of a briefing. `filter` None means all projects.

    `own` is the project that the agent works on. Notes of other projects are marked. With `may_widen`, strong
    matches of other projects are shown if no note of `filter` matches strongly.
    """

    filter: ProjectFilter | None = None
    own: str | None = None
    may_widen: bool = False

    def passes(self, task: Task) -> bool:
        """Return whether the briefing may mention the task."""
        return self.filter is None or self.filter.passes(projects_of(task.metadata.get(PROPERTY)))

    def foreign(self, projects: Sequence[str]) -> str:
        """Return the project to name for a note with these projects, or "" for a note that needs no mark."""
        if self.own is None or not projects or any(same_project(self.own, each) for each in projects):
            return ""
        return projects[0]


#: Scope of a call without a project.
EVERYTHING: Final = ProjectScope()


def scope_of(asked: str | None, working_in: str | None) -> ProjectScope:
    """Return the scope for the argument `project`, in a session that works in a project or in none.

    The default is the session's project with the common notes. Raises `InvalidInput`.
    """
    key = read_project(asked, working_in)
    if key is None:
        key = working_in
    if key is None:
        return EVERYTHING
    if key == ALL_PROJECTS:
        return ProjectScope(own=working_in)
    if not key:
        return ProjectScope(filter=ProjectFilter(""), own=working_in)
    return ProjectScope(filter=ProjectFilter(key, has_common=True), own=key, may_widen=key == working_in)
