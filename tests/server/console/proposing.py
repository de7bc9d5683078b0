"""Agents that may only propose changes, for console tests of proposals."""

from __future__ import annotations

from typing import Any

from lithos.notes.model.scopes import EVERYTHING, Scope, WriteScopes
from lithos.notes.writing.actor_writer import Writer
from tests.servers import Lithos

#: Agents whose changes all become proposals.
PROPOSERS = ("bot", "bee")


def bind(lithos: Lithos, *agents: str) -> None:
    """Bind these agents so that they can only propose changes."""
    names = agents or PROPOSERS
    lithos.server.get(Writer).scopes = WriteScopes(
        agents={name: Scope(write=(), propose=EVERYTHING) for name in names}
    )


async def propose(lithos: Lithos, tool: str, agent: str = "bot", **arguments: Any) -> str:
    """Call a tool that changes notes as a proposing agent. Return the id of the proposal."""
    answer = await lithos.call(tool, agent=agent, **arguments)
    assert answer["status"] == "proposed", answer
    return str(answer["proposal_id"])


async def propose_text(lithos: Lithos, note: str, content: str, agent: str = "bot", **more: Any) -> str:
    """Propose a new text for a note. Return the id of the proposal."""
    title = (await lithos.read(note))["title"]
    return await propose(
        lithos, "lithos_write", agent, **({"id": note, "title": title, "content": content} | more)
    )


async def propose_note(
    lithos: Lithos, title: str, content: str = "New.", agent: str = "bot", **more: Any
) -> str:
    """Propose a new note. Return the id of the proposal."""
    return await propose(lithos, "lithos_write", agent, title=title, content=content, **more)


async def row_of(lithos: Lithos, proposal_id: str) -> dict[str, Any]:
    """Return the proposal as `lithos_proposals` shows it."""
    answer = await lithos.call("lithos_proposals", id=proposal_id)
    row: dict[str, Any] = answer["proposal"]
    return row


async def decide(
    lithos: Lithos, proposal_id: str, decision: str, by: str = "Ann", **more: Any
) -> dict[str, Any]:
    """Approve or reject a proposal as `lithos proposals` does."""
    arguments = {"id": proposal_id, "decision": decision, "by": by, **more}
    answer = await lithos.server.tools.call("lithos_proposal_decide", arguments)
    assert answer is not None
    return dict(answer)
