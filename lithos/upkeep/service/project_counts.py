"""Counts of the notes and tasks of each project (docs/spec/projects.md §8)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import trio
from attrs import define, field

from lithos.events.journal.reading import JournalThread
from lithos.events.reading.told_projects import ToldProjects
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.threads import slices
from lithos.kernel.values.projects import projects_of
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.tasks.rows.project_rows import ProjectRows

#: Key under which notes and tasks without a project are counted.
COMMON = ""


@define
class ProjectCount:
    """Numbers of one project. `last_change` is the last change of one of its notes or tasks.

    `sessions` is the number of client sessions whose hooks named the project in the last 30 days.
    """

    project: str
    notes: int = 0
    tasks: int = 0
    open_tasks: int = 0
    sessions: int = 0
    last_change: datetime | None = None

    def changed(self, at: datetime | None) -> None:
        """Record the time of a change."""
        if at is not None and (self.last_change is None or at > self.last_change):
            self.last_change = at


@define
class _Counting:
    """Counts under construction. Keys that differ only in case are one project."""

    _found: dict[str, ProjectCount] = field(factory=dict)

    def of(self, keys: Iterable[str]) -> Iterable[ProjectCount]:
        for key in keys or (COMMON,):
            yield self._found.setdefault(key.casefold(), ProjectCount(key))

    def ordered(self) -> list[ProjectCount]:
        return [self._found[key] for key in sorted(self._found)]


@define(eq=False)
class ProjectCounter:
    """A counter of projects. It counts only on request and raises `DatabaseFailed`."""

    _catalogue: Catalogue
    _journal: CoordinationStore
    _reading: JournalThread
    _told: ToldProjects

    async def count(self) -> list[ProjectCount]:
        """Return the counts of all projects, ordered by key. Notes and tasks without a project come first."""
        counting = _Counting()
        async for entries in slices(list(self._catalogue)):
            for entry in entries:
                for count in counting.of(self._catalogue.projects.of(entry)):
                    count.notes += 1
                    count.changed(entry.note.updated_at)
        await trio.lowlevel.checkpoint()
        rows = self._journal.rows(ProjectRows)
        for value, tasks, is_open, at in await self._reading.run(lambda: list(rows.counts())):
            for count in counting.of(projects_of(value)):
                count.tasks += tasks
                count.open_tasks += is_open
                count.changed(at)
        for told in self._told.rows():
            for count in counting.of((told.project,)):
                count.sessions += 1
        return counting.ordered()
