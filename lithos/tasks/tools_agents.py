"""Tools for the registry of agents: register, show, archive and list."""

from __future__ import annotations

from typing import Any

from lithos.events.model.agents import Agent
from lithos.events.reading.agents import Agents
from lithos.kernel.parts import Parts
from lithos.kernel.values.times import format_time
from lithos.server.tools.arguments import argument, one_form, read_time
from lithos.server.tools.bounds import LOOKUP, METADATA, NAME
from lithos.server.tools.compacting import CompactForm
from lithos.server.tools.declaring import Answer, tool
from lithos.server.tools.fitting import CuttableAnswer
from lithos.server.tools.serialization import row_of


@tool(
    "lithos_agent_register",
    "full",
    "I",
    place=13,
    title="Register an agent",
    of="tasks",
    sparing=CompactForm(always=("created",)),
)
class AgentRegisterTool:
    """Register yourself, or update your display name, type or metadata."""

    id: str = argument("Your agent id.", bound=NAME, is_caller=True)
    name: str | None = argument("Display name.", None, bound=NAME)
    type: str | None = argument("Kind of agent, e.g. claude-code.", None, bound=NAME)
    metadata: dict[str, Any] | None = argument("Metadata keys about you.", None, bound=METADATA)

    async def answer(self, using: Parts) -> Answer:
        done = await using.get(Agents).register(self.id, self.name, self.type, self.metadata)
        answer = {"success": True, "created": done.created}
        if done.namesake is None:
            return answer
        return answer | {
            "warnings": [
                f"The active agent {done.namesake!r} also has the name {self.name!r}. If you are that agent, "
                f"use the id {done.namesake!r} from now on. Otherwise register another name."
            ]
        }


@tool("lithos_agent_info", "full", "RI", place=14, title="Show an agent", of="tasks")
class AgentInfoTool:
    """Show an agent's name, type and last activity."""

    id: str = argument("Agent id.", bound=LOOKUP)

    async def answer(self, using: Parts) -> Answer:
        agent = using.get(Agents).get(self.id)
        return None if agent is None else row_of(agent)


@tool(
    "lithos_agent_archive",
    "full",
    "I",
    place=55,
    title="Archive an agent",
    of="tasks",
    sparing=CompactForm(always=("id", "already_archived")),
)
class AgentArchiveTool:
    """Retire an agent that no longer works, so that lists leave it out. It comes back when it acts or
    registers again.
    """

    id: str = argument("Id of the agent to retire.", bound=LOOKUP)
    agent: str = argument("Your agent id.", bound=NAME)

    async def answer(self, using: Parts) -> Answer:
        agent_id = one_form(self.id)
        done = await using.get(Agents).archive(agent_id, self.agent)
        return {
            "success": True,
            "id": agent_id,
            "archived_at": format_time(done.archived_at),
            "already_archived": done.already_archived,
        }


@tool(
    "lithos_agent_list",
    "full",
    "RI",
    place=15,
    title="List agents",
    paged=CuttableAnswer(rows=("agents",)),
    sparing=CompactForm(always=("agents",)),
    of="tasks",
)
class AgentListTool:
    """List agents, most recently seen first. Archived agents are left out unless you ask for them."""

    type: str | None = argument("Only agents of this kind.", None, bound=LOOKUP)
    active_since: str | None = argument("Only agents seen since this ISO time.", None, bound=LOOKUP)
    include_archived: bool = argument("Also list archived agents.", False)

    async def answer(self, using: Parts) -> Answer:
        since = read_time("active_since", self.active_since)
        found = using.get(Agents).list_agents(self.type, since, with_archived=self.include_archived)
        return {"agents": [_list_row(agent) for agent in found]}


def _list_row(agent: Agent) -> dict[str, Any]:
    row = row_of(agent)
    order = ("id", "name", "type", "last_seen_at", "first_seen_at", "metadata", "archived_at")
    return {key: row[key] for key in order}
