"""Tools of agents (register, info, list) and of the server's statistics (`lithos_stats`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from lithos.core.tasks.model import Agent
from lithos.core.times import format_time
from lithos.services.state import ServerState
from lithos.services.tasks.agents import Agents
from lithos.tools.contract.arguments import argument, read_time
from lithos.tools.contract.bounds import LOOKUP, METADATA, NAME
from lithos.tools.contract.registry import Answer, Tool


@frozen
class RegisterArguments:
    """Parameters of `lithos_agent_register`."""

    id: str = argument("Your id.", bound=NAME, is_caller=True)
    name: str | None = argument("Display name.", None, bound=NAME)
    type: str | None = argument("Such as claude-code.", None, bound=NAME)
    metadata: dict[str, Any] | None = argument("Anything else about you.", None, bound=METADATA)


@frozen
class InfoArguments:
    """Parameters of `lithos_agent_info`."""

    id: str = argument("Agent id.", bound=LOOKUP)


@frozen
class ListArguments:
    """Parameters of `lithos_agent_list`."""

    type: str | None = argument("Only this kind.", None, bound=LOOKUP)
    active_since: str | None = argument("Seen since then.", None, bound=LOOKUP)


class AgentTools:
    """Handlers; each takes its arguments class."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents

    def tools(self) -> Sequence[Tool]:
        """The family in listing order."""
        return (
            Tool(
                "lithos_agent_register",
                "standard",
                "I",
                "Introduce yourself, or change how you are known.",
                RegisterArguments,
                self.register,
            ),
            Tool(
                "lithos_agent_info", "standard", "RI", "What is known of an agent.", InfoArguments, self.info
            ),
            Tool(
                "lithos_agent_list",
                "standard",
                "RI",
                "Agents, most recent first.",
                ListArguments,
                self.list_all,
            ),
        )

    async def register(self, arguments: RegisterArguments) -> Answer:
        """`lithos_agent_register`."""
        created = await self._agents.register(
            arguments.id, arguments.name, arguments.type, arguments.metadata
        )
        return {"success": True, "created": created}

    async def info(self, arguments: InfoArguments) -> Answer:
        """`lithos_agent_info`."""
        agent = self._agents.get(arguments.id)
        return None if agent is None else _row(agent)

    async def list_all(self, arguments: ListArguments) -> Answer:
        """`lithos_agent_list`."""
        since = read_time("active_since", arguments.active_since)
        return {"agents": [_list_row(agent) for agent in self._agents.list_agents(arguments.type, since)]}


def _list_row(agent: Agent) -> dict[str, Any]:
    row = _row(agent)
    order = ("id", "name", "type", "last_seen_at", "first_seen_at", "metadata")
    return {key: row[key] for key in order}


def _row(agent: Agent) -> dict[str, Any]:
    return {
        "id": agent.id,
        "name": agent.name,
        "type": agent.type,
        "first_seen_at": format_time(agent.first_seen_at),
        "last_seen_at": format_time(agent.last_seen_at),
        "metadata": dict(agent.metadata),
    }


@frozen
class NoArguments:
    """For tools without parameters."""


class SystemTools:
    """Handlers; each takes its arguments class."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def tools(self) -> Sequence[Tool]:
        """The family in listing order."""
        return (
            Tool(
                "lithos_stats",
                "standard",
                "RI",
                "Numbers of notes, chunks, links, agents, tasks; index drift.",
                NoArguments,
                self.stats,
            ),
        )

    async def stats(self, _: NoArguments) -> Answer:
        """`lithos_stats`."""
        return await self._state.stats()
