"""Service that remembers in which projects hooks say that agents work (docs/spec/projects.md §2)."""

from __future__ import annotations

from collections.abc import Collection

from attrs import define

from lithos.events.journal.coordinator import Coordinator
from lithos.events.model.told_projects import ToldProject
from lithos.kernel.parts import Clock


@define(eq=False)
class ToldProjects:
    """The projects of client sessions. All methods use only memory, and the coordinator stores the rows."""

    _coordinator: Coordinator
    _clock: Clock

    def rows(self) -> list[ToldProject]:
        """Return the sessions of the last 30 days, the one that was seen last first."""
        return self._coordinator.told.rows()

    @property
    def known(self) -> Collection[str]:
        """The agents of these sessions. The view changes with the sessions."""
        return self._coordinator.told.agents

    def tell(self, session: str, agent: str, project: str) -> None:
        """Remember that a hook of this session named a project for its agent."""
        self._coordinator.told.tell(ToldProject(session, agent, project, self._clock()))

    def find(self, agent: str) -> str | None:
        """Return the project of an agent that does not name one, or None.

        An agent with sessions in several projects has no project, because its call may belong to any of them.
        """
        return self._coordinator.told.project_of(agent, self._clock())
