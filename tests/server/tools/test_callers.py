"""The caller:

`agent` and `agent_id` name the caller in every tool and never filter (docs/spec/tools.md §1.4).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from lithos.app.capabilities import all_tools
from lithos.kernel.values.principals import Principal
from lithos.notes.model.scopes import Scope, WriteScopes
from lithos.notes.writing.actor_writer import Writer
from lithos.server.tools.arguments import CALLERS, ArgumentFault
from tests.servers import Lithos, refusal, serving

#: For each tool: its agent filter, other arguments, the key of its rows, and the agent key of a row.
FILTERS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "lithos_task_list": ("created_by", {}, "tasks", "created_by"),
    "lithos_history": ("changed_by", {"since": "2020-01-01T00:00:00Z"}, "versions", "agent"),
    "lithos_proposals": ("proposed_by", {}, "proposals", "agent"),
}
UPSTREAM = {"write_outcomes": "status"}


async def make_work(lithos: Lithos) -> None:
    """Create a task, a note and a proposal for each of two agents."""
    for agent in ("ann", "bob"):
        await lithos.call("lithos_task_create", title=f"Task of {agent}", agent=agent)
        await lithos.create(f"Note of {agent}", agent=agent)
    asks = Scope((), ("**",))
    lithos.server.get(Writer).scopes = WriteScopes(agents={"ann": asks, "bob": asks})
    for agent in ("ann", "bob"):
        wanted = await lithos.call("lithos_write", title=f"Wish of {agent}", content="Text.", agent=agent)
        assert wanted["status"] == "proposed"


async def shown(lithos: Lithos, tool: str, principal: Principal | None = None, **given: Any) -> set[str]:
    """Return the agents whose work the tool shows."""
    _, more, rows, key = FILTERS[tool]
    box = lithos.server.tools
    arguments = {**more, **given}
    acting = box if principal is None else box.acting_as(principal)
    answer = await acting.call(tool, arguments)
    assert answer is not None
    assert "code" not in answer, answer
    return {row[key] for row in answer[rows]}


@pytest.mark.needs("proposals")
async def test_agent_parameter_does_not_filter(tmp_path: Path) -> None:
    """behaviour 305"""
    async with serving(tmp_path) as lithos:
        await make_work(lithos)
        for tool, (parameter, *_) in FILTERS.items():
            for caller in CALLERS:
                for agent in ("ann", "bob", "stranger"):
                    assert await shown(lithos, tool, **{caller: agent}) == {"ann", "bob"}
            assert await shown(lithos, tool, **{parameter: "bob", "agent": "ann"}) == {"bob"}
            assert await shown(lithos, tool, **{parameter: " bob "}) == {"bob"}
            assert await shown(lithos, tool, **{parameter: "stranger"}) == set()


@pytest.mark.needs("proposals")
async def test_bound_token_may_filter_by_any_agent(tmp_path: Path) -> None:
    """behaviours 247, 305"""
    async with serving(tmp_path) as lithos:
        await make_work(lithos)
        bound = Principal("ci", "read", "ann")
        for tool, (parameter, *_) in FILTERS.items():
            assert await shown(lithos, tool, bound) == {"ann", "bob"}
            assert await shown(lithos, tool, bound, agent="ann", **{parameter: "bob"}) == {"bob"}
            for caller in CALLERS:
                forged = await lithos.server.tools.acting_as(bound).call(tool, {caller: "bob"})
                assert forged is not None
                assert f"{caller} names another" in refusal(forged, "forbidden")


@pytest.mark.needs("proposals")
async def test_agent_parameter_filters_only_for_upstream_clients(tmp_path: Path) -> None:
    """docs/spec/tools.md §1.4: these clients set `server.write_outcomes: status`."""
    async with serving(tmp_path, server=UPSTREAM) as lithos:
        await make_work(lithos)
        for tool, (parameter, *_) in FILTERS.items():
            assert await shown(lithos, tool, agent="bob") == {"bob"}
            assert await shown(lithos, tool, Principal("ci", "read", "ann"), agent=" bob ") == {"bob"}
            assert await shown(lithos, tool, agent=" ") == {"ann", "bob"}
            assert await shown(lithos, tool, agent_id="bob") == {"ann", "bob"}
            assert await shown(lithos, tool, **{parameter: "bob", "agent": "ann"}) == {"bob"}


async def test_error_names_the_history_filter_when_only_agent_is_given(tmp_path: Path) -> None:
    async with serving(tmp_path) as lithos:
        told = refusal(await lithos.call("lithos_history", agent="ann"), "invalid_input")
        assert "changed_by" in told


def test_every_tool_accepts_the_caller_as_agent_or_agent_id() -> None:
    """docs/spec/tools.md §1.4: applies even if the tool's own parameter has another name.

    The additional name is not in the tool listing.
    """
    tools = all_tools()
    assert len(tools) > 40
    for tool in tools:
        fields = {each.name for each in attrs.fields(tool.arguments)}
        own = next((name for name in (*tool.reader.callers, "agent") if name in fields), None)
        values: dict[str, Any] = {
            each.name: 1.0 if each.name == "weight" else "text"
            for each in attrs.fields(tool.arguments)
            if each.default is attrs.NOTHING and each.name != own
        }
        for caller in CALLERS:
            given = tool.reader.read({**values, caller: " ann "})
            assert own is None or getattr(given, own) == "ann", (tool.name, caller)
            with pytest.raises(ArgumentFault, match=f"'{caller}'"):
                tool.reader.read({**values, caller: 7})
        assert len({*CALLERS, *tool.reader.callers} & tool.spec().input_schema["properties"].keys()) <= 1


async def test_agent_id_names_the_author_when_the_parameter_is_agent(lithos: Lithos) -> None:
    """docs/spec/tools.md §1.4"""
    made = await lithos.call("lithos_write", title="Raft", content="About raft.", agent_id="ann")
    assert (await lithos.read(made["id"]))["metadata"]["author"] == "ann"
    own = await lithos.call("lithos_write", title="Paxos", content="Text.", agent="bob", agent_id="ann")
    assert (await lithos.read(own["id"]))["metadata"]["author"] == "bob"
