"""Beginnings of ids in tools, resources, commands and the console (docs/spec/tools.md §1.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from lithos.app.capabilities import all_tools
from lithos.kernel.values.errors import AmbiguousIdPrefix
from lithos.kernel.values.ids import prefix_of
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.resources import NoteResources
from lithos.server.mcp.resource_pages import UnknownResource
from lithos.server.tools.arguments import _OF_NOTES, _OF_TASKS
from lithos.tasks.resources import TaskResources
from tests.kernel.actors.boards import Board
from tests.memory.tools.task_calls import create
from tests.server.console.visiting import visiting
from tests.servers import Lithos, put_note, refusal, serving

#: Ids of notes. The first two share their first seven characters.
ONE, TWO, OTHER = (f"{begin}-1111-4111-8111-111111111111" for begin in ("abcdef01", "abcdef02", "12345678"))
#: Parameters for ids of other objects, and parameters that name agents.
ELSEWHERE = {"receipt_id", "edge_id", "agent_id", "request_id", "max_context_nodes"}


def put_three(data: Path) -> None:
    for name, note_id in (("one", ONE), ("two", TWO), ("other", OTHER)):
        put_note(data, f"{name}.md", f"---\nid: {note_id}\ntitle: {name.title()}\n---\nText of {name}.\n")


def test_every_id_parameter_accepts_beginnings() -> None:
    """behaviour 335"""
    left = set()
    for tool in all_tools():
        for each in attrs.fields(tool.arguments):
            is_id = each.name.endswith(("_id", "_ids", "_nodes")) or each.name in (
                "depends_on",
                "source_task",
            )
            if is_id and each.metadata["note"] is None and each.name not in _OF_TASKS | _OF_NOTES:
                left.add(each.name)
    assert left <= ELSEWHERE


async def test_six_characters_name_a_note_in_every_tool(tmp_path: Path) -> None:
    """behaviour 335"""
    put_three(tmp_path)
    async with serving(tmp_path) as lithos:
        call = lithos.call
        for short in ("123456", "12345678-1111", " 123456 ", "123456".upper()):
            assert (await call("lithos_read", id=short))["id"] == OTHER
        assert (await call("lithos_node_stats", node_id="123456"))["node_id"] == OTHER
        assert (await call("lithos_related", id="123456"))["id"] == OTHER
        assert (await call("lithos_write", id="123456", title="Other", content="x", agent="a"))["id"] == OTHER
        assert (await call("lithos_note_update", id="123456", tags=["t"], agent="a"))["id"] == OTHER
        assert (await call("lithos_history", id="123456"))["id"] == OTHER
        made = await call(
            "lithos_write", title="New", content="n", agent="a", derived_from_ids=["abcdef01", "123456"]
        )
        read = await call("lithos_read", id=made["id"])
        assert set(read["metadata"]["derived_from_ids"]) == {ONE, OTHER}
        await call(
            "lithos_edge_upsert", from_id="123456", to_id="abcdef02", type="a", weight=1, namespace="n"
        )
        (edge,) = (await call("lithos_edge_list", from_id="123456"))["edges"]
        assert (edge["from_id"], edge["to_id"]) == (OTHER, TWO)
        answer = await call("lithos_read", id="abcdef")
        assert ONE in refusal(answer, "ambiguous_id_prefix")
        assert answer["candidates"] == [{"id": ONE, "title": "One"}, {"id": TWO, "title": "Two"}]
        answer = await call("lithos_delete", id="abcdef0", agent="a")
        refusal(answer, "ambiguous_id_prefix")
        refusal(await call("lithos_read", id="12345"), "doc_not_found")
        refusal(await call("lithos_read", id="1234567z"), "doc_not_found")
        await call("lithos_delete", id="abcdef01", agent="a")
        assert (await call("lithos_read", id="abcdef"))["id"] == TWO
        deleted = await call("lithos_history", id="abcdef01")
        assert (deleted["id"], deleted["versions"][0]["op"]) == (ONE, "deleted")
        assert (await call("lithos_restore", id="abcdef01", version=1, agent="a"))["id"] == ONE
        refusal(await call("lithos_read", id="abcdef"), "ambiguous_id_prefix")


async def test_six_characters_name_a_task_in_every_tool(lithos: Lithos) -> None:
    """behaviour 335"""
    first = await create(lithos, "First")
    last = await create(lithos, "Last", depends_on=[first[:8]], parent_task_id=None)
    by = {"agent": "ann"}

    async def call(name: str, **arguments: Any) -> Any:
        answer = await lithos.call(f"lithos_{name}", **arguments)
        assert answer.get("status") != "error", answer
        return answer

    short = first[:8]
    assert (await call("task_get", task_id=short))["task"]["id"] == first
    assert [row["id"] for row in (await call("task_status", task_id=short))["tasks"]] == [first]
    await call("task_claim", task_id=short, aspect="work", **by)
    await call("task_renew", task_id=short, aspect="work", **by)
    await call("finding_post", task_id=short, summary="s", **by)
    assert len((await call("finding_list", task_id=short))["findings"]) == 1
    assert len((await call("task_edge_list", task_id=short))["edges"]) == 1
    await call("task_release", task_id=short, aspect="work", **by)
    await call("task_update", task_id=short, title="New", **by)
    spawned = (await call("task_spawn", source_task_id=short, title="S", **by))["task_id"]
    await call("task_edge_upsert", from_task_id=spawned[:8], to_task_id=short, type="parent_child", **by)
    await call("task_edge_delete", from_task_id=spawned[:8], to_task_id=short, type="parent_child", **by)
    assert (await call("task_next", task_id=short, **by))["task"]["id"] == first
    assert (await call("task_complete", task_id=short, **by))["unblocked"] == [last]
    await call("task_reopen", task_id=short, **by)
    await call("task_cancel", task_id=short, **by)
    refusal(await lithos.call("lithos_task_get", task_id=first[:5]), "task_not_found")


def test_ambiguous_task_prefix_names_five_candidates() -> None:
    """behaviour 335: a whole id comes first, and the query uses the index of the primary key."""
    board = Board()
    ids = [board.create(f"Task {number}") for number in range(7)]
    prefix = ids[0][:6]
    assert board.rows.identify(ids[3]) == ids[3]
    with pytest.raises(AmbiguousIdPrefix) as refused:
        board.rows.identify(prefix)
    assert [row["id"] for row in refused.value.extras["candidates"]] == ids[:5]
    assert refused.value.message.count("id-0") == 6
    plan: list[Any] = board.connection.execute(
        "EXPLAIN QUERY PLAN SELECT id, title FROM tasks WHERE id>=? AND id<? ORDER BY id LIMIT ?",
        ("a", "b", 6),
    ).fetchall()
    assert "SEARCH tasks USING INDEX" in plan[0][3]
    assert len(plan) == 1


async def test_resources_and_the_access_log_accept_beginnings(tmp_path: Path) -> None:
    """behaviour 335"""
    put_three(tmp_path)
    async with serving(tmp_path) as lithos:
        notes, tasks = lithos.server.get(NoteResources), lithos.server.get(TaskResources)
        assert b"Text of other" in (await notes.read("123456", "ann")).body
        with pytest.raises(UnknownResource, match="Several note ids"):
            await notes.read("abcdef", "ann")
        task = await create(lithos, "A task")
        body: Any = (await tasks.read(task[:7], "ann")).body
        assert body["task"]["id"] == task
        assert lithos.server.get(Catalogue).identify("123456") == OTHER


async def test_console_pages_accept_beginnings(tmp_path: Path) -> None:
    """behaviour 335"""
    put_three(tmp_path)
    async with visiting(tmp_path) as person:
        assert "Text of other" in (await person.look("/console/notes/123456")).text
        task = await create(person.lithos, "The task")
        assert "The task" in (await person.look(f"/console/tasks/{task[:8]}")).text
        assert "The task" in (await person.look(f"/console/tasks/{task[:8]}/cancel")).text
        assert ONE in (await person.look("/console/notes/abcdef", 400)).text
        await person.look("/console/graph?note=123456")


def test_short_texts_and_longer_texts_cannot_begin_an_id() -> None:
    assert [prefix_of(text) for text in ("12345", "ABCDEF", " abcdef ", "Zebra-Note", ONE + "0")] == [
        None, "abcdef", "abcdef", "Zebra-Note", None,
    ]  # fmt: skip
