"""Rights and identity for every tool: permitted callers and their agent names (behaviours 246, 247)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from lithos.app.capabilities import all_tools
from lithos.events.journal.coordinator import Coordinator
from lithos.kernel.values.errors import Forbidden, InvalidInput
from lithos.kernel.values.principals import ANYONE, OWNER, RIGHTS, Principal, Rights
from lithos.server.service_state import Gauges
from lithos.server.tools.arguments import ArgumentFault
from lithos.server.tools.declaring import Tool
from lithos.server.tools.registry import admit, identities_of, right_of, spec_for
from tests.servers import Lithos, serving

TOOLS: dict[str, Tool] = {tool.name: tool for tool in all_tools()}
FILTERS = {name: tool.reader.agent_filter for name, tool in TOOLS.items() if tool.reader.agent_filter}
#: Parameters that look like agent names, with their meaning. Every such parameter must be in this table.
NAMED: dict[tuple[str, str], str] = {
    ("lithos_agent_info", "id"): "whom to look at",
    ("lithos_agent_register", "id"): "caller",
    ("lithos_agent_register", "name"): "what the caller is called",
    ("lithos_conflict_resolve", "resolver"): "caller",
    ("lithos_edge_upsert", "provenance_actor"): "caller",
    ("lithos_list", "author"): "filter",
    ("lithos_search", "author"): "filter",
}
LIKE_AN_AGENT = re.compile(
    r"agent|_by$|author|actor|resolver|owner|\buser|caller|creator|reader|writer|assignee|person",
    re.IGNORECASE,
)
YOURS = re.compile(r"\byour (agent )?id\b", re.IGNORECASE)
BOUND = {rights: Principal("ci", rights, "bot") for rights in RIGHTS}


def expected_right(tool: Tool) -> Rights:
    return "read" if "R" in tool.hints else "write"


@pytest.mark.parametrize("rights", RIGHTS)
def test_every_tool_needs_its_right_or_a_higher_right(rights: Rights) -> None:
    """behaviour 246"""
    assert len(TOOLS) > 40
    refused = 0
    for tool in TOOLS.values():
        principal, needed = Principal("ci", rights), expected_right(tool)
        arguments: dict[str, Any] = {"action": "quarantine"}
        if RIGHTS.index(rights) >= RIGHTS.index(needed):
            assert admit(principal, tool, arguments) == arguments
            continue
        refused += 1
        with pytest.raises(Forbidden, match=rf"'ci' has the right {rights}; .*{tool.name} needs {needed}"):
            admit(principal, tool, arguments)
    assert bool(refused) is (rights == "read")


@pytest.mark.parametrize("arguments", [{}, {"action": "preview"}, {"action": None}, {"action": " "}])
def test_impact_preview_needs_only_the_right_to_read(arguments: dict[str, Any]) -> None:
    """behaviour 246"""
    assert [name for name, tool in TOOLS.items() if tool.preview] == ["lithos_impact"]
    assert right_of(TOOLS["lithos_impact"], arguments) == "read"
    for action in ("quarantine", "clear", "Preview", "nonsense", 7, ["preview"]):
        assert right_of(TOOLS["lithos_impact"], {"action": action}) == "write"


@pytest.mark.parametrize("rights", RIGHTS)
def test_tool_listing_shows_only_callable_tools(rights: Rights) -> None:
    """behaviour 246"""
    shown = {
        name
        for name, tool in TOOLS.items()
        if spec_for(Principal("ci", rights), tool, tool.spec()) is not None
    }
    reading = {name for name, tool in TOOLS.items() if "R" in tool.hints or tool.preview}
    assert shown == (reading if rights == "read" else set(TOOLS))
    assert 0 < len(reading) < len(TOOLS)


def test_every_agent_parameter_has_a_declared_meaning() -> None:
    """A new tool must declare whether its agent-like parameter is the caller or a filter (behaviour 247)."""
    found = 0
    for tool in TOOLS.values():
        for each in attrs.fields(tool.arguments):
            about = each.metadata["description"]
            looks_like_one = LIKE_AN_AGENT.search(each.name) or YOURS.search(about)
            if not looks_like_one and (tool.name, each.name) not in NAMED:
                continue
            found += 1
            is_identity = each.name in identities_of(tool)
            if YOURS.search(about):
                assert is_identity, f"{tool.name}.{each.name} is the caller's, but is not enforced"
            elif each.name == FILTERS.get(tool.name):
                assert not is_identity, f"{tool.name}.{each.name}: caller or filter?"
            else:
                assert (tool.name, each.name) in NAMED, f"{tool.name}.{each.name}: caller or filter?"
                assert is_identity is (NAMED[tool.name, each.name] == "caller")
    assert found > 30
    assert NAMED.keys() <= {(t.name, each.name) for t in TOOLS.values() for each in attrs.fields(t.arguments)}


def test_bound_identity_is_filled_in_and_cannot_be_replaced() -> None:
    """behaviour 247"""
    checked = 0
    for tool in TOOLS.values():
        own = [each.name for each in attrs.fields(tool.arguments)]
        for name in identities_of(tool):
            checked += 1
            place = next((each for each in identities_of(tool) if each in own), identities_of(tool)[0])
            for given in ({}, {name: None}, {name: " "}, {name: "bot"}, {name: " bot "}):
                filled = dict(admit(BOUND["admin"], tool, given))
                assert filled[place] == "bot", tool.name
                assert set(filled.values()) == {"bot"}
            for other in ("Bot", "bo", "bot2", 7, ["bot"], {"a": 1}, True, 0):
                with pytest.raises(Forbidden, match="'ci' is bound to the agent 'bot'"):
                    admit(BOUND["admin"], tool, {name: other})
    assert checked > 40


def test_agent_filters_show_the_work_of_other_agents() -> None:
    for name, parameter in FILTERS.items():
        shown = admit(BOUND["read"], TOOLS[name], {parameter: "ada"})
        assert shown == {parameter: "ada", "agent": "bot"}
    assert admit(BOUND["read"], TOOLS["lithos_list"], {"author": "ada"})["author"] == "ada"
    assert admit(BOUND["read"], TOOLS["lithos_agent_info"], {"id": "ada"})["id"] == "ada"


def test_bound_caller_may_omit_its_name() -> None:
    """behaviour 247"""
    relieved = 0
    for tool in TOOLS.values():
        spec = tool.spec()
        shown = spec_for(BOUND["admin"], tool, spec)
        assert shown is not None
        required = set(spec.input_schema.get("required", ()))
        assert set(shown.input_schema.get("required", ())) == required - set(identities_of(tool))
        relieved += required != set(shown.input_schema.get("required", ()))
        assert spec_for(OWNER, tool, spec) is spec
        assert shown.input_schema["properties"] == spec.input_schema["properties"]
    assert relieved > 10


@pytest.mark.parametrize("principal", [OWNER, ANYONE, Principal("ci", "write")])
def test_unbound_caller_may_give_any_name(principal: Principal) -> None:
    for tool in TOOLS.values():
        given = dict.fromkeys(identities_of(tool), "ada")
        assert admit(principal, tool, given) is given


@pytest.mark.parametrize(
    "principal", [OWNER, ANYONE, Principal("ci", "admin"), Principal("old", "admin", "undo")]
)
def test_callers_cannot_use_a_reserved_name(principal: Principal) -> None:
    """Covers every tool and parameter, including arguments that only Lithos may set."""
    checked = 0
    for tool in TOOLS.values():
        for name in identities_of(tool):
            for given in ("undo", " Watcher ", "ｐｅｒｓｏｎ"):
                checked += 1
                with pytest.raises(InvalidInput, match="Lithos itself acts under that name"):
                    admit(principal, tool, {name: given})
                own = attrs.evolve(principal, agent=None, is_own=True)
                assert admit(own, tool, {name: given}) == {name: given}
        for name in tool.reader.own:
            with pytest.raises(ArgumentFault, match="Leave it out"):
                admit(principal, tool, {name: 1})
            assert name not in tool.spec().input_schema["properties"]
    assert checked > 150
    assert sum(bool(tool.reader.own) for tool in TOOLS.values()) == 3
    for name, parameter in FILTERS.items() if principal.agent is None else ():
        assert admit(principal, TOOLS[name], {parameter: "undo"}) == {parameter: "undo"}


async def test_tasks_notes_findings_and_accesses_store_the_true_agent_name(tmp_path: Path) -> None:
    """behaviour 247"""
    async with serving(tmp_path, server={"legacy_tools": True}) as lithos:
        acting = lithos.server.tools.acting_as(Principal("ci", "write", "bot"))

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            answer = await acting.call(tool, arguments)
            assert answer is not None
            assert "code" not in answer, answer
            return dict(answer)

        note = await call("lithos_write", title="Raft", content="About raft.")
        assert (await call("lithos_read", id=note["id"]))["metadata"]["author"] == "bot"
        await call("lithos_search", query="raft")
        await call("lithos_semantic", query="raft")
        task = await call("lithos_task_create", title="Look")
        await call("lithos_task_claim", task_id=task["task_id"], aspect="work")
        await call("lithos_finding_post", task_id=task["task_id"], summary="Found.")
        await call("lithos_agent_register", name="The bot")
        findings = await call("lithos_finding_list", task_id=task["task_id"])
        assert [row["agent"] for row in findings["findings"]] == ["bot"]
        history = await call("lithos_history", id=note["id"])
        assert {row["agent"] for row in history["versions"]} == {"bot"}
        audit = await lithos.audit()
        assert len(audit) >= 3
        assert {agent for agent, _, _ in audit} == {"bot"}
        store = lithos.server.get(Coordinator)._store
        assert {event.draft.agent for event in store.events_after(lithos.first_seq)} == {"bot"}
        for tool, arguments in (
            ("lithos_write", {"title": "T", "content": "c", "agent": "ada"}),
            ("lithos_agent_register", {"id": "ada"}),
            ("lithos_read", {"id": note["id"], "agent_id": "ada"}),
            ("lithos_tags", {"agent": "ada"}),
        ):
            answer = await acting.call(tool, arguments)
            assert answer is not None
            assert (answer["status"], answer["code"]) == ("error", "forbidden")


async def test_caller_with_read_right_changes_nothing_and_refusals_are_counted(lithos: Lithos) -> None:
    """behaviour 246"""
    acting = lithos.server.tools.acting_as(Principal("ci", "read"))
    answer = await acting.call("lithos_write", {"title": "T", "content": "c", "agent": "ada"})
    assert answer is not None
    assert answer["code"] == "forbidden"
    assert lithos.files() == []
    text = (await lithos.server.get(Gauges).scrape()).decode()
    assert 'lithos_tool_errors_total{error="forbidden",tool="lithos_write"} 1.0' in text
