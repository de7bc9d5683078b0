"""Note paths. Every tool accepts them in place of note ids (docs/spec/tools.md §1.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from lithos.app.capabilities import all_tools
from lithos.server.http.ports import compact_json
from lithos.server.tools.arguments import ArgumentFault, note_paths
from tests.servers import Lithos, refusal, serving

#: Calls that name one note, with the other required arguments.
CALLS: dict[str, dict[str, Any]] = {
    "lithos_related": {},
    "lithos_impact": {},
    "lithos_node_stats": {},
    "lithos_history": {},
    "lithos_links": {},
    "lithos_provenance": {},
    "lithos_note_update": {"tags": ["x"], "agent": "ann"},
    "lithos_note_edit": {"op": "append", "text": "More.", "agent": "ann"},
    "lithos_restore": {"version": 1, "agent": "ann"},
    "lithos_note_move": {"path": "elsewhere", "agent": "ann"},
    "lithos_delete": {"agent": "ann"},
}
#: Parameters that contain ids of other objects, or note ids under another rule.
OTHERS = {
    "lithos_write", "lithos_read", "lithos_agent_register", "lithos_agent_info", "fetch", "lithos_proposals",
    "lithos_proposal_withdraw", "lithos_agent_archive",
}  # fmt: skip


def test_every_note_id_parameter_is_declared_as_note_id() -> None:
    """A failure reminds contributors to declare the note id parameter of a new tool."""
    about = {
        tool.name
        for tool in all_tools()
        if {"id", "node_id"} & attrs.fields_dict(tool.arguments).keys() and tool.name not in OTHERS
    }
    assert about == CALLS.keys()
    assert all(note_paths(tool.arguments) for tool in all_tools() if tool.name in about)


async def test_path_is_accepted_in_place_of_the_id(tmp_path: Path) -> None:
    async with serving(tmp_path, server={"tools": "full", "legacy_tools": True}) as lithos:
        specs = {spec.name: spec.input_schema for spec in lithos.server.tools.listed()}
        other = await lithos.create("Two", path="a")
        for tool, given in CALLS.items():
            name = "from_path" if tool == "lithos_note_move" else "path"
            subject = "node_id" if tool == "lithos_node_stats" else "id"
            assert name in specs[tool]["properties"]
            assert subject not in specs[tool].get("required", ())
            title = f"One for {tool}"
            path = (made := await lithos.write(title, "[[Two]]", path="a"))["path"]
            refused = await lithos.call(tool, **given | {name: path.removesuffix(".md"), subject: other})
            assert "name two different notes" in refusal(refused, "invalid_input")
            refusal(await lithos.call(tool, **given | {name: "a/none"}), "doc_not_found")
            by_path = await lithos.call(tool, **given | {name: path, subject: ""})
            assert by_path.get("status") != "error", by_path
            assert by_path.get("id", by_path.get("node_id", made["id"])) == made["id"]
            assert (title in await lithos.listed()) == (tool != "lithos_delete")


async def test_deleted_note_is_restored_by_its_path(lithos: Lithos) -> None:
    note = await lithos.create("Gone", "the text", path="a")
    await lithos.call("lithos_delete", path="a/gone", agent="ann")
    refusal(await lithos.call("lithos_delete", path="a/gone", agent="ann"), "doc_not_found")
    rows = (await lithos.call("lithos_history", path="a/gone"))["versions"]
    assert [row["op"] for row in rows] == ["deleted", "created"]
    back = await lithos.call("lithos_restore", path="a/gone", version=1, agent="ann")
    assert (back["id"], (await lithos.read(note))["content"]) == (note, "the text")


async def test_edges_and_findings_accept_note_paths(lithos: Lithos) -> None:
    one, two = await lithos.create("One"), await lithos.create("Two")
    edge = {"type": "supports", "weight": 1, "namespace": "n", "agent": "ann"}
    await lithos.call("lithos_edge_upsert", from_path="one", to_path="two", **edge)
    (found,) = (await lithos.call("lithos_edge_list", to_path="two"))["edges"]
    assert (found["from_id"], found["to_id"]) == (one, two)
    task = (await lithos.call("lithos_task_create", title="T", agent="ann"))["task_id"]
    await lithos.call("lithos_finding_post", task_id=task, agent="ann", summary="s", knowledge_path="one")
    (finding,) = (await lithos.call("lithos_finding_list", task_id=task))["findings"]
    assert finding["knowledge_id"] == one


async def faults(lithos: Lithos, tool: str, **given: Any) -> str:
    with pytest.raises(ArgumentFault) as caught:
        await lithos.call(tool, **given)
    return caught.value.message


async def test_note_path_error_names_its_cause(lithos: Lithos) -> None:
    """behaviour 173"""
    assert "'id' (or 'path')" in await faults(lithos, "lithos_delete", agent="ann")
    assert "'path' must be text" in await faults(lithos, "lithos_delete", agent="ann", path=5)
    refusal(await lithos.call("lithos_delete", agent="ann", path="x" * 5_000), "invalid_input")


async def test_max_length_of_a_read_also_limits_its_lists(lithos: Lithos) -> None:
    text = " ".join(f"[[Link number {number}]]" for number in range(150))
    note = await lithos.create("Many", f"{text}\n\n## Part\n\ntext")
    read = await lithos.read(note, max_length=100)
    assert read["links_total"] == 150
    assert 0 < len(compact_json(read["links"])) <= 1_001
    whole = await lithos.read(note)
    assert (len(whole["links"]), "links_total" in whole) == (150, False)
    outline = await lithos.read(note, outline=True, max_length=1_000)
    assert 0 < len(outline["links"]) < 150
    assert len(compact_json(outline["links"])) + len(compact_json(outline["outline"])) < 1_010
    assert outline["links_total"] == 150
