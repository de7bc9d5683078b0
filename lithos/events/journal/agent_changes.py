"""Registering and archiving of agents: each function turns a message into an agent, an event and a reply.

The functions do not change the coordinator's state. An agent whose `archived_at` is set is archived. Activity
or a registration clears `archived_at`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import attrs

from lithos.events.journal.messages import (
    ArchiveAgent,
    ArchivedAgent,
    PreparedMessage,
    RegisterAgent,
    RegisteredAgent,
)
from lithos.events.model.agents import Agent
from lithos.kernel.values.errors import AgentNotFound
from lithos.kernel.values.events import AGENT_ARCHIVED, AGENT_REGISTERED, EventDraft
from lithos.kernel.values.principals import fold_name
from lithos.kernel.values.times import format_time


def seen(agent_id: str, known: Agent | None, now: datetime) -> Agent:
    """Return the agent after an activity. An archived agent is active again."""
    if known is None:
        return Agent(id=agent_id, first_seen_at=now, last_seen_at=now)
    return attrs.evolve(known, last_seen_at=max(now, known.last_seen_at), archived_at=None)


def register(
    message: RegisterAgent, known: Agent | None, others: Iterable[Agent], now: datetime
) -> PreparedMessage:
    """Prepare a registration. Values that it leaves out stay.

    `others` are all known agents. They are searched only if the agent gets its first name.
    """
    agent = Agent(
        id=message.id,
        name=message.name if message.name is not None or known is None else known.name,
        type=message.type if message.type is not None or known is None else known.type,
        first_seen_at=known.first_seen_at if known else now,
        last_seen_at=now,
        metadata=dict(message.metadata or (known.metadata if known else {})),
    )
    draft = EventDraft(
        type=AGENT_REGISTERED,
        agent=message.id,
        payload={"agent_id": message.id, "name": agent.name or ""},
        timestamp=now,
    )
    is_named_now = agent.name is not None and (known is None or known.name is None)
    namesake = _namesake(agent, others) if is_named_now else None
    return PreparedMessage(message, (draft,), agent, RegisteredAgent(known is None, namesake))


def archive(message: ArchiveAgent, known: Agent | None, now: datetime) -> PreparedMessage:
    """Prepare the archiving of an agent. If it is archived already, nothing changes and no event is sent."""
    if known is None:
        return PreparedMessage(
            message,
            reply=AgentNotFound(
                f"Unknown agent id {message.id[:100]!r}. lithos_agent_list shows the agents. Nothing was "
                "changed."
            ),
        )
    if known.archived_at is not None:
        return PreparedMessage(message, reply=ArchivedAgent(known.archived_at, already_archived=True))
    draft = EventDraft(
        type=AGENT_ARCHIVED,
        agent=message.by,
        payload={"agent_id": known.id, "name": known.name or "", "archived_at": format_time(now)},
        timestamp=now,
    )
    agent = attrs.evolve(known, archived_at=now)
    return PreparedMessage(message, (draft,), agent, ArchivedAgent(now, already_archived=False))


def _namesake(agent: Agent, others: Iterable[Agent]) -> str | None:
    """Return the id of another active agent with the same name. Case and width are ignored."""
    wanted = fold_name(agent.name or "")
    if not wanted:
        return None
    named = (
        other.id
        for other in others
        if other.name and other.archived_at is None and other.id != agent.id
        if fold_name(other.name) == wanted
    )
    return min(named, default=None)
