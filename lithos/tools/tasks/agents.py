"""Tools of agents (register, info, list) and of the server's statistics (`lithos_stats`)."""

from __future__ import annotations

from typing import Any

from lithos.core.tasks.model import Agent
from lithos.tools.contract.arguments import argument, read_time
from lithos.tools.contract.bounds import LOOKUP, METADATA, NAME
from lithos.tools.contract.declaring import Answer, Services, tool
from lithos.tools.contract.fitting import Paged
from lithos.tools.contract.rows import row_of


@tool("lithos_agent_register", "standard", "I", place=13, of="tasks")
class AgentRegisterTool:
    """Introduce yourself, or change how you are known."""

    id: str = argument("Your id.", bound=NAME, is_caller=True)
    name: str | None = argument("Display name.", None, bound=NAME)
    type: str | None = argument("Such as claude-code.", None, bound=NAME)
    metadata: dict[str, Any] | None = argument("Anything else about you.", None, bound=METADATA)

    async def answer(self, using: Services) -> Answer:
        created = await using.agents.register(self.id, self.name, self.type, self.metadata)
        return {"success": True, "created": created}


@tool("lithos_agent_info", "standard", "RI", place=14, of="tasks")
class AgentInfoTool:
    """What is known of an agent."""

    id: str = argument("Agent id.", bound=LOOKUP)

    async def answer(self, using: Services) -> Answer:
        agent = using.agents.get(self.id)
        return None if agent is None else row_of(agent)


@tool("lithos_agent_list", "standard", "RI", place=15, paged=Paged(rows=("agents",)), of="tasks")
class AgentListTool:
    """Agents, most recent first."""

    type: str | None = argument("Only this kind.", None, bound=LOOKUP)
    active_since: str | None = argument("Seen since then.", None, bound=LOOKUP)

    async def answer(self, using: Services) -> Answer:
        since = read_time("active_since", self.active_since)
        return {"agents": [_list_row(agent) for agent in using.agents.list_agents(self.type, since)]}


def _list_row(agent: Agent) -> dict[str, Any]:
    row = row_of(agent)
    order = ("id", "name", "type", "last_seen_at", "first_seen_at", "metadata")
    return {key: row[key] for key in order}


@tool("lithos_stats", "standard", "RI", place=28)
class StatsTool:
    """Numbers of notes, chunks, links, agents, tasks; index drift."""

    async def answer(self, using: Services) -> Answer:
        return await using.state.stats()
