"""Inexact arguments that models send and Lithos accepts (docs/spec/tools.md §1.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from lithos.server.tools.arguments import ArgumentFault
from lithos.server.tools.declaring import OWN, Tool
from tests.memory.tools.task_calls import create
from tests.servers import Lithos, refusal, serving

#: For each tool: parameters for which a blank text has a meaning.
SPEAKING = {
    "lithos_write": {"id", "source_task", "source_url", "expires_at", "confidence"},
    "lithos_task_update": {"description"},
}
#: Tools whose complete answers contain new numbers or random ids.
CREATING = (
    "lithos_write", "lithos_retrieve", "lithos_context", "lithos_task_", "lithos_edge_upsert",
    "lithos_finding_post",
)  # fmt: skip
#: Tools that can be called only once for a task.
ENDING = ("lithos_task_complete", "lithos_task_cancel")


def all_tools(lithos: Lithos) -> Iterator[Tool]:
    yield from (tool for tool in lithos.server.tools._by_name.values() if tool.profile != OWN)


def optional_of(tool: Tool) -> Iterator[attrs.Attribute[Any]]:
    for each in attrs.fields(tool.arguments):
        if each.default is not attrs.NOTHING and not each.metadata["is_own"]:
            yield each


async def known_arguments(lithos: Lithos) -> dict[str, Any]:
    """Return valid values for the required arguments of all tools."""
    note = await lithos.create("Known", "known zebra", path="a")
    task = await create(lithos)
    other = await create(lithos, "Other")
    return {
        "id": note, "node_id": note, "from_id": note, "to_id": note, "task_id": task, "source_task_id": task,
        "from_task_id": task, "to_task_id": other, "agent": "ann", "query": "zebra", "title": "T",
        "content": "c", "aspect": "work", "summary": "s", "type": "supports", "weight": 0.5,
        "namespace": "n", "path": "moved", "edge_id": "e", "resolution": "merged", "resolver": "ann",
        "version": 1,
        "op": "append",
    }  # fmt: skip


def required_of(tool: Tool, known: dict[str, Any]) -> dict[str, Any]:
    required = [each.name for each in attrs.fields(tool.arguments) if each.default is attrs.NOTHING]
    given = {name: known[name] for name in required}
    if tool.name == "lithos_task_edge_upsert":
        given["type"] = "blocks"
    if tool.name == "lithos_context":
        given["query"] = known["query"]
    if tool.name == "lithos_write":
        given |= {"title": known["title"], "content": known["content"]}
    if tool.name == "lithos_note_edit":
        given |= {"id": known["id"], "text": "More."}
    if tool.name in ("lithos_read", "lithos_history"):
        given["id"] = known["id"]
    if tool.name == "lithos_restore":
        given["version"] = known["version"]
    if tool.name == "lithos_note_update":
        given["tags"] = ["t"]
    if tool.name == "lithos_task_update":
        given["tags"] = ["t"]
    if tool.name == "lithos_context":
        given["query"] = known["query"]
    if tool.name == "lithos_agent_register":
        given["id"] = "ann"
    return given


@pytest.mark.slow
async def test_optional_parameter_may_be_blank_null_or_zero(tmp_path: Path) -> None:
    """docs/spec/tools.md §1.2: blank and null count as absent. Zero is a number or is refused by name."""
    async with serving(tmp_path, server={"tools": "full", "legacy_tools": True}) as lithos:
        known = await known_arguments(lithos)
        calls = 0
        for tool in all_tools(lithos):
            given = required_of(tool, known)
            if tool.name in ("lithos_delete", "lithos_conflict_resolve"):
                continue
            if tool.name in ENDING:
                given["task_id"] = await create(lithos, "Ends")
            plain = await lithos.call(tool.name, **given)
            for each in optional_of(tool):
                if each.name in given:
                    continue
                for value in ("", "  ", None, 0):
                    more = dict(given)
                    if tool.name in ENDING:
                        more["task_id"] = await create(lithos, "Ends")
                    if tool.name == "lithos_write":
                        more["title"] = f"T {each.name} {value!r} {calls}"
                    if tool.name == "lithos_note_move":
                        more["path"] = f"moved-{calls}"
                    if value == 0 and not _is_number(tool, each.name):
                        continue
                    if isinstance(value, str) and each.name in SPEAKING.get(tool.name, ()):
                        continue
                    if tool.name == "lithos_task_release":
                        # Claim the task again, because the previous call released the claim.
                        await lithos.call("lithos_task_claim", **given)
                    answer = await lithos.call(tool.name, **more | {each.name: value})
                    calls += 1
                    if value == 0:
                        if isinstance(answer, dict) and answer.get("status") == "error":
                            named = each.name in answer["message"] or answer["code"] in (
                                "version_conflict",
                                "doc_not_found",
                            )
                            assert named, (tool.name, each.name, answer)
                        continue
                    is_refused = isinstance(answer, dict) and answer.get("status") == "error"
                    was_refused = isinstance(plain, dict) and plain.get("status") == "error"
                    assert is_refused == was_refused, (tool.name, each.name, value, answer)
                    if not tool.name.startswith(CREATING) and tool.name != "lithos_read":
                        assert _kind(answer) == _kind(plain), (tool.name, each.name, value)
        assert calls > 250


def _is_number(tool: Tool, name: str) -> bool:
    hint = str(attrs.fields_dict(tool.arguments)[name].type)
    return "int" in hint or "float" in hint


def _kind(answer: Any) -> Any:
    """Return the kind of an answer. A blank argument must not change it."""
    if not isinstance(answer, dict):
        return answer
    return {key: len(value) if isinstance(value, list | dict) else None for key, value in answer.items()}


async def test_blank_filter_has_the_same_effect_as_no_filter(tmp_path: Path) -> None:
    """docs/spec/tools.md §1.2"""
    async with serving(tmp_path, server={"tools": "full"}) as lithos:
        known = await known_arguments(lithos)
        assert len(await lithos.listed(author="", path_prefix=" ", since="", content_query="")) == 1
        for mode in ("", "fulltext"):
            assert await lithos.found("zebra", author="", mode=mode) == ["Known"]
        tasks = await lithos.call("lithos_task_list", created_by="", status="", since=" ", task_type="")
        assert tasks["total"] == 2
        assert (await lithos.call("lithos_task_ready", project=""))["total"] == 2
        assert (await lithos.call("lithos_agent_list", type="", active_since=""))["total"] > 0
        assert "task_id" in await lithos.call("lithos_task_create", title="T", agent="a", parent_task_id="")
        assert (await lithos.call("lithos_edge_list", type="", namespace=""))["total"] == 0
        answer = await lithos.call("lithos_retrieve", query="zebra", max_context_nodes=0)
        assert [row["id"] for row in answer["results"]] == [known["id"]]


async def test_blank_id_does_not_create_a_copy(lithos: Lithos) -> None:
    """docs/spec/tools.md §1.2"""
    for blank in ("", " "):
        answer = await lithos.call("lithos_write", title="T", content="c", agent="a", id=blank)
        assert "Omit id to create" in refusal(answer, "invalid_input")
    assert lithos.files() == []


async def test_json_text_is_accepted_as_the_value_it_contains(lithos: Lithos) -> None:
    """docs/spec/tools.md §1.2"""
    note = await lithos.create(tags='["a", "b"]', metadata=' {"k": [1]}')
    read = (await lithos.read(note))["metadata"]
    assert (read["tags"], read["extra"]) == (["a", "b"], {"k": [1]})
    assert await lithos.listed(tags='["a"]', metadata_match='{"k": 1}') == ["A note"]
    edge = {"from_id": note, "to_id": note, "type": "supports", "weight": 1, "namespace": "n"}
    await lithos.call("lithos_edge_upsert", **edge, evidence='[{"quote": "x"}]')
    (row,) = (await lithos.call("lithos_edge_list"))["edges"]
    assert row["evidence"] == '[{"quote": "x"}]'
    for bad in ("a,b", "[1]", "[", '{"a": 1}', '"a"', "[" * 5_000):
        with pytest.raises(ArgumentFault, match="must be a list of texts"):
            await lithos.call("lithos_list", tags=bad)
    with pytest.raises(ArgumentFault, match=r'such as \["a","b"\], not \'a,b\''):
        await lithos.call("lithos_list", tags="a,b")
    with pytest.raises(ArgumentFault, match="must be an object such as"):
        await lithos.call("lithos_list", metadata_match="k=1")


async def test_every_tool_accepts_the_caller_as_agent(tmp_path: Path) -> None:
    """docs/spec/vault.md §4: the argument has the name `agent`."""
    async with serving(tmp_path, server={"tools": "full", "legacy_tools": True}) as lithos:
        known = await known_arguments(lithos)
        for tool in all_tools(lithos):
            given = required_of(tool, known) | {"agent": "caller"}
            if tool.name == "lithos_conflict_resolve":
                del given["resolver"]
            if tool.name == "lithos_agent_register":
                del given["id"]
            await lithos.call(tool.name, **given)  # an unknown argument would raise ArgumentFault
        assert await lithos.call("lithos_agent_info", id="caller")


async def test_agent_in_place_of_agent_id_is_audited_without_registration(lithos: Lithos) -> None:
    """docs/spec/vault.md §4"""
    note = await lithos.create("Zebra", "zebra")
    await lithos.read(note, agent="reader")
    await lithos.read(note, agent="other", agent_id="older name")
    await lithos.found("zebra", agent="seeker")
    assert [row[0] for row in await lithos.audit()] == ["reader", "older name", "seeker"]
    await lithos.call("lithos_list", agent="nobody")
    agents = (await lithos.call("lithos_agent_list"))["agents"]
    assert [row["id"] for row in agents] == ["tester"]
    with pytest.raises(ArgumentFault, match="'agent'"):
        await lithos.call("lithos_list", agent=7)


async def test_every_list_in_a_tool_schema_has_typed_items(tmp_path: Path) -> None:
    """docs/spec/tools.md §1.5"""
    async with serving(tmp_path, server={"tools": "full", "legacy_tools": True}) as lithos:
        for spec in lithos.server.tools.listed():
            for schema in spec.input_schema["properties"].values():
                for kind in schema.get("anyOf", [schema]):
                    typed = kind.get("items", {}).get("anyOf", [kind.get("items", {})])
                    assert kind["type"] != "array" or all(each["type"] for each in typed)


async def test_evidence_schema_allows_objects_and_arrays(lithos: Lithos) -> None:
    """behaviour 386"""
    (tool,) = (each for each in all_tools(lithos) if each.name == "lithos_edge_upsert")
    assert [each["type"] for each in tool.reader.schema["properties"]["evidence"]["anyOf"]] == [
        "object",
        "array",
    ]


@pytest.mark.parametrize("text", ["true", "True", " TRUE ", "1", "yes", "on", 1, True])
async def test_booleans_are_accepted_as_text(lithos: Lithos, text: object) -> None:
    """behaviour 386"""
    note = await lithos.create("Note", "## One\n\nText.")
    assert "outline" in await lithos.read(note, outline=text)


@pytest.mark.parametrize("text", ["false", "False", "0", "no", "off", 0, False, "null", "None", "undefined"])
async def test_false_and_null_are_accepted_as_text(lithos: Lithos, text: object) -> None:
    """behaviour 386"""
    note = await lithos.create("Note", "## One\n\nText.")
    assert "outline" not in await lithos.read(note, outline=text)


@pytest.mark.parametrize("value", ["maybe", "2", 2, 1.5, [], {}, [True], 10**400])
async def test_invalid_boolean_values_are_refused(lithos: Lithos, value: object) -> None:
    """behaviour 386"""
    with pytest.raises(ArgumentFault, match="'outline' must be true or false"):
        await lithos.call("lithos_read", id="x", outline=value)


async def test_text_null_omits_an_argument_that_is_not_a_text(lithos: Lithos) -> None:
    """behaviour 386: a text may be the word null. A number, list or choice cannot be that word."""
    note = await lithos.create("null", "nothing is null", tags="null", confidence="null")
    assert (await lithos.read(note, max_length="null", version="None"))["title"] == "null"
    assert await lithos.found("null", limit="null", tags="undefined", mode="null") == ["null"]
    assert await lithos.listed(title_contains="null", metadata_match="null") == ["null"]


async def test_single_text_is_accepted_as_a_list_of_one(lithos: Lithos) -> None:
    """behaviour 386"""
    note = await lithos.create(tags="plan/now")
    assert (await lithos.read(note))["metadata"]["tags"] == ["plan/now"]
    assert await lithos.listed(tags="plan") == ["A note"]


ADDED: tuple[dict[str, Any], ...] = (
    {"toolCallId": "call_1"}, {"tool_call_id": "call_1"}, {"_meta": {"progressToken": 1}}, {"sessionId": "s"},
    {"chatInput": "hello", "sessionId": "s", "action": "sendMessage", "tool": "Search"}, {"signal": {}},
    {"requestId": 4}, {"random_string": "dummy"}, {"wait_for_previous": True}, {"TOOL-USE-ID": "toolu_1"},
)  # fmt: skip


@pytest.mark.parametrize("added", ADDED)
async def test_arguments_that_clients_add_are_ignored(lithos: Lithos, added: dict[str, Any]) -> None:
    """behaviour 388"""
    await lithos.create("Zebra", "zebra")
    assert await lithos.found("zebra", **added) == ["Zebra"]
    assert "task_id" in await lithos.call("lithos_task_create", title="T", agent="a", toolCallId="call_1")


@pytest.mark.parametrize(
    "name", ["limits", "querry", "path-prefix", "action", "tool", "__arg1", "chat", "tokens"]
)
async def test_misspelt_arguments_are_still_refused(lithos: Lithos, name: str) -> None:
    """behaviour 388"""
    with pytest.raises(ArgumentFault, match=f"Unknown argument '{name}'"):
        await lithos.found("zebra", **{name: "x"})
