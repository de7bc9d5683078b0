"""Agents: who they say they are, and when they were last seen."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lithos.actors.coordinator import Coordinator, RegisterAgent
from lithos.core.agents import Agent
from lithos.services.outcomes import honest_outcome


class Agents:
    """The use cases around agents."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    async def register(
        self, agent_id: str, name: str | None, kind: str | None, metadata: Mapping[str, Any] | None
    ) -> bool:
        """Insert or merge an agent, durably; True when it is new."""
        message = RegisterAgent(agent_id, name, kind, metadata)
        with honest_outcome("Look with lithos_agent_info before you retry."):
            return bool(await self._coordinator.mailbox.ask(message))

    def get(self, agent_id: str) -> Agent | None:
        """One agent."""
        return self._coordinator.agents.get(agent_id)

    def list_agents(self, kind: str | None, active_since: datetime | None) -> list[Agent]:
        """Agents of a type and seen since, most recent first."""
        passing = [
            agent
            for agent in self._coordinator.agents.values()
            if (kind is None or agent.type == kind)
            and (active_since is None or agent.last_seen_at >= active_since)
        ]
        return sorted(passing, key=lambda agent: (agent.last_seen_at, agent.id), reverse=True)
