"""Answers of every tool in three forms: compact, full, and for Lithos's own commands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lithos.app.capabilities import all_tools
from lithos.kernel.values.principals import COMMAND
from lithos.notes.tools_rows import NOTE_DEFAULTS
from lithos.server.http.ports import compact_json
from lithos.server.tools.compacting import STORED
from tests.servers import MISSING_ID, Lithos, serving

#: Values that people or agents may store. Every answer must contain them unchanged.
STORED_VALUES = {"f": False, "e": "", "n": {"x": None, "y": []}, "l": [], "score": 0.123456789}
FULL = [{"answers": "full"}, {"tools": "full"}, {"write_outcomes": "status"}]
#: For each tool: keys that are sent even if they are empty (docs/spec/tools.md §1.7).
ALWAYS = {
    "lithos_read": {"id", "title", "content", "metadata", "links", "truncated"},
    "lithos_search": {"results", "snippet", "is_stale"},
    "lithos_retrieve": {"results", "snippet"},
    "lithos_list": {"items"},
    "lithos_cache_lookup": {"hit"},
    **{
        f"lithos_task_{name}": {"tasks", "claims", "blockers"}
        for name in ("list", "status", "ready", "blocked", "children", "get")
    },
    **{
        f"lithos_{name}": {"warnings"}
        for name in ("write", "note_edit", "note_update", "note_move", "restore")
    },
    "lithos_task_next": {"task", "claims"},
    "lithos_related": {"links", "outgoing", "incoming"},
    "lithos_edge_list": {"edges"}, "lithos_task_edge_list": {"edges"}, "lithos_finding_list": {"findings"},
    "lithos_agent_archive": {"already_archived"},
    "lithos_agent_register": {"created"}, "lithos_agent_list": {"agents"}, "lithos_history": {"versions"},
    "lithos_proposals": {"proposals"}, "lithos_tags": {"tags"}, "lithos_stats": {"index_drift_detected"},
    "lithos_impact": {"dependents"},
}  # fmt: skip


@asynccontextmanager
async def server_of(tmp_path: Path, **server: Any) -> AsyncIterator[Lithos]:
    """Run a server with compact answers, unless `server` contains other settings."""
    async with serving(tmp_path, server={"answers": "compact", **server}) as lithos:
        yield lithos


async def ask_every_tool(lithos: Lithos, *, is_own: bool = False) -> list[tuple[str, Any]]:
    """Call every tool. Some of the answers are almost empty. Return pairs of tool name and answer."""
    answers: list[tuple[str, Any]] = []

    async def call(tool: str, **arguments: Any) -> Any:
        if is_own:
            answer = await lithos.server.tools.call(tool, arguments, COMMAND)
        else:
            answer = await lithos.call(tool, **arguments)
        answers.append((tool, answer))
        return answer

    await call("lithos_search", query="nothing there")
    await call("lithos_task_list")
    await call("lithos_edge_list")
    await call("lithos_proposals")
    await call("lithos_tags")
    await call("lithos_history", deleted=True)
    await call("lithos_list")
    await call("lithos_agent_list")
    await call("lithos_cache_lookup", query="zebras on jupiter")
    wind = await call("lithos_write", title="Wind", content="Wind turns a mill.", agent="ann")
    mill = await call(
        "lithos_write", title="Mill", content="A mill needs [[Wind]] and [[Water|some water]].",
        agent="ann", metadata=STORED_VALUES, tags=["power"], derived_from_ids=[wind["id"]],
    )  # fmt: skip
    one, two = wind["id"], mill["id"]
    await call("lithos_note_update", id=two, agent="bob", tags=["power", "old"])
    await call("lithos_note_edit", id=two, agent="bob", op="append", text="It grinds.")
    await call("lithos_note_move", id=two, agent="bob", path="old/mill.md")
    for note in (one, two):
        await call("lithos_read", id=note)
    await call("lithos_list", metadata_match={"f": False})
    await call("lithos_list")
    await call("lithos_search", query="mill wind", mode="semantic")
    for explain in (False, True):
        await call("lithos_search", query="mill", explain=explain)
        await call("lithos_retrieve", query="what turns a mill", explain=explain)
        await call("lithos_context", query="what turns a mill", explain=explain)
    await call("lithos_cache_lookup", query="Wind turns a mill.")
    await call("lithos_tags")
    await call("lithos_related", id=two)
    await call("lithos_impact", id=one)
    await call("lithos_history", id=two)
    await call("lithos_history", id=two, diff="1..2")
    await call("lithos_restore", id=two, agent="bob", version=1)
    await call("lithos_node_stats", node_id=one)
    edge = await call(
        "lithos_edge_upsert", from_id=one, to_id=two, type="contradicts", weight=0.123456789,
        namespace="default", provenance_actor="ann", evidence={"why": "", "sure": False},
    )  # fmt: skip
    await call("lithos_edge_list")
    await call("lithos_related", id=one)
    await call("lithos_conflict_resolve", edge_id=edge["edge_id"], resolution="accepted_dual", resolver="ann")
    await call("lithos_agent_register", id="ann", metadata={"beta": False})
    await call("lithos_agent_info", id="ann")
    await call("lithos_agent_info", id="nobody-here")
    await call("lithos_agent_list")
    await call("lithos_agent_archive", id="ann", agent="ann")
    await call("lithos_task_next", agent="ann")
    task = (await call("lithos_task_create", title="Build", agent="ann", metadata=STORED_VALUES))["task_id"]
    later = (await call("lithos_task_create", title="Paint", agent="ann", depends_on=[task]))["task_id"]
    await call("lithos_task_update", task_id=later, agent="ann", description="In white")
    for name in ("list", "status", "ready", "blocked"):
        await call(f"lithos_task_{name}")
    await call("lithos_task_get", task_id=task)
    await call("lithos_task_children", task_id=task)
    await call("lithos_task_edge_upsert", from_task_id=task, to_task_id=later, type="related", agent="ann")
    await call("lithos_task_edge_list", task_id=task)
    await call("lithos_task_edge_delete", from_task_id=task, to_task_id=later, type="blocks", agent="ann")
    await call("lithos_task_spawn", source_task_id=task, title="Sand", agent="ann")
    await call("lithos_task_claim", task_id=task, aspect="work", agent="ann")
    await call("lithos_task_renew", task_id=task, aspect="work", agent="ann")
    await call("lithos_task_release", task_id=task, aspect="work", agent="ann")
    await call("lithos_task_next", agent="ann")
    await call("lithos_finding_post", task_id=task, agent="ann", summary="Half done")
    await call("lithos_finding_list", task_id=task)
    await call("lithos_task_complete", task_id=task, agent="ann")
    await call("lithos_task_reopen", task_id=task, agent="ann")
    await call("lithos_task_cancel", task_id=task, agent="ann")
    await call("lithos_proposal_withdraw", id=MISSING_ID, agent="ann")
    await call("lithos_read", id=MISSING_ID)
    await call("lithos_write", title="Again", content="x", agent="ann", id=one, expected_version=99)
    await call("lithos_stats")
    await call("lithos_delete", id=one, agent="ann")
    return answers


def idle(value: Any, always: set[str], at: str = "") -> Iterator[str]:
    """Yield the paths of values without information in an answer."""
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from idle(each, always, f"{at}[{number}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in always and (item is None or item is False or item in ("", [], {})):
                yield f"{at}.{key}"
            if key in NOTE_DEFAULTS and item == NOTE_DEFAULTS[key] and key != "status":
                yield f"{at}.{key}"
            if key not in STORED:
                yield from idle(item, always, f"{at}.{key}")


def shape(value: Any) -> Any:
    """Return the keys of a value on every level, in order."""
    if isinstance(value, dict):
        return {key: shape(item) if key not in STORED else "stored" for key, item in value.items()}
    return [shape(each) for each in value] if isinstance(value, list | tuple) else type(value).__name__


@pytest.mark.needs("proposals")
async def test_compact_answers_contain_no_empty_values(tmp_path: Path) -> None:
    """Behaviour 301."""
    async with server_of(tmp_path) as lithos:
        answers = await ask_every_tool(lithos)
    assert {tool for tool, _ in answers} == {
        tool.name for tool in all_tools() if tool.profile != "connector" and not tool.is_legacy
    }
    found = {
        (tool, place)
        for tool, answer in answers
        for place in idle(answer, ALWAYS.get(tool, set()))
        if answer is not None
    }
    assert not found


@pytest.mark.needs("proposals")
@pytest.mark.parametrize("server", FULL, ids=str)
async def test_every_setting_for_full_answers_sends_all_keys(tmp_path: Path, server: dict[str, str]) -> None:
    """Behaviour 307: every setting for full answers sends all keys, like answers to Lithos's own commands."""
    async with server_of(tmp_path / "full", **server) as lithos:
        full = await ask_every_tool(lithos)
    async with server_of(tmp_path / "own", **{**server, "answers": "full"}) as lithos:
        own = await ask_every_tool(lithos, is_own=True)
    for (tool, answer), (_, other) in zip(full, own, strict=True):
        assert shape(answer) == shape(other), tool
    keys = {tool: set(answer) for tool, answer in full if answer is not None}
    read = next(answer for tool, answer in full if tool == "lithos_read")
    assert set(read) == {
        "id", "title", "content", "metadata", "links", "truncated", "retrieval_count", "path", "version",
        "namespace",
    }  # fmt: skip
    assert {"extra", "source_url", "derived_from_ids", "expires_at", "aliases"} <= set(read["metadata"])
    row = next(answer for tool, answer in reversed(full) if tool == "lithos_search")["results"][0]
    assert {"id", "title", "snippet", "score", "path", "source_url", "updated_at", "is_stale"} <= set(row)
    assert {"id", "included", "links", "provenance", "edges", "related_ids"} <= keys["lithos_related"]
    assert {"edges", "results"} <= keys["lithos_edge_list"]


@pytest.mark.needs("proposals")
async def test_own_commands_of_lithos_get_full_answers(tmp_path: Path) -> None:
    async with server_of(tmp_path / "compact") as lithos:
        own = [each for each in await ask_every_tool(lithos, is_own=True) if each[0] != "lithos_context"]
    async with server_of(tmp_path / "full", answers="full") as lithos:
        full = [each for each in await ask_every_tool(lithos) if each[0] != "lithos_context"]
    for (tool, answer), (_, other) in zip(own, full, strict=True):
        assert shape(answer) == shape(other), tool


async def test_stored_values_are_sent_unchanged(tmp_path: Path) -> None:
    async with server_of(tmp_path) as lithos:
        note = await lithos.create("Mill", "Some text.", metadata=STORED_VALUES)
        metadata = (await lithos.read(note))["metadata"]
        assert {key: metadata[key] for key in STORED_VALUES} == STORED_VALUES
        listed = await lithos.call("lithos_list", metadata_match={"f": False})
        assert listed["items"][0]["metadata"] == STORED_VALUES
        await lithos.call("lithos_task_create", title="Build", agent="ann", metadata=STORED_VALUES)
        assert (await lithos.call("lithos_task_list"))["tasks"][0]["metadata"] == STORED_VALUES
        await lithos.call("lithos_agent_register", id="ann", metadata=STORED_VALUES)
        assert (await lithos.call("lithos_agent_info", id="ann"))["metadata"] == STORED_VALUES


@pytest.mark.parametrize("tool", ["lithos_search", "lithos_retrieve"])
async def test_rows_contain_explanations_only_on_request(tmp_path: Path, tool: str) -> None:
    """Behaviour 302."""
    async with server_of(tmp_path) as lithos:
        await lithos.create("Wind", "Wind turns a mill.")
        plain = await lithos.call(tool, query="mill")
        fresh = {"is_stale"} if tool == "lithos_search" else set()
        assert set(plain["results"][0]) == {"id", "title", "snippet", "path", "updated_at", "match"} | fresh
        told = await lithos.call(tool, query="mill", explain=True)
        assert {"score"} <= set(told["results"][0])
        assert told["results"][0]["score"] == round(told["results"][0]["score"], 3)
        if tool == "lithos_retrieve":
            assert set(plain) == {"results", "receipt_id"}
            assert {"reasons", "scouts", "salience"} <= set(told["results"][0])


async def test_times_in_findings_and_versions_are_valid_arguments(tmp_path: Path) -> None:
    async with server_of(tmp_path) as lithos:
        note = await lithos.create("Wind", "Wind turns a mill.")
        at = (await lithos.call("lithos_history", id=note))["versions"][0]["at"]
        assert (await lithos.read(note, as_of=at))["content"] == "Wind turns a mill."
        task = (await lithos.call("lithos_task_create", title="Build", agent="ann"))["task_id"]
        await lithos.call("lithos_finding_post", task_id=task, agent="ann", summary="Half done")
        (row,) = (await lithos.call("lithos_finding_list", task_id=task))["findings"]
        later = await lithos.call("lithos_finding_list", task_id=task, since=row["created_at"])
        assert later["findings"] == []


MILL = """The mill at the river grinds wheat from April to October, as long as the weir holds two metres.
Each farmer brings the grain on a fixed day, and pays with a tenth of the flour. The stones are dressed each
second week by the mason from the next village, who takes a day for it and is paid by the parish. In winter
the miller repairs the wheel, cuts new paddles of oak, and keeps the sluice free of ice; children come to
look on Thursdays. Since the flood of the spring of 1893 a second sluice leads the water past the wheel.
"""


def size(answer: Any) -> int:
    return len(compact_json(answer))


async def test_read_and_write_answers_stay_within_their_size_limits(tmp_path: Path) -> None:
    async with server_of(tmp_path) as lithos:
        text = MILL[:500].rstrip()
        for number in range(4):
            title = f"How the old mill grinds {number}"
            written = await lithos.call("lithos_write", title=title, content=text, agent="ann", path="notes")
            assert size(written) <= 400
        assert written["similar"]
        assert size(await lithos.read(written["id"])) <= 800
        listed = await lithos.call("lithos_list")
        assert size(listed) <= 160 * len(listed["items"]) + 40


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "fulltext"])
async def test_ten_search_rows_stay_within_their_size_limit(tmp_path: Path, mode: str) -> None:
    async with server_of(tmp_path) as lithos:
        for number in range(12):
            await lithos.create(f"How the mill number {number} grinds", MILL * 3, path="notes/mills")
        ten = await lithos.call("lithos_search", query="mill sluice miller", mode=mode)
        assert len(ten["results"]) == 10
        assert size(ten) <= 3_500
        assert all(row["snippet"] for row in ten["results"])
        two = await lithos.call("lithos_search", query="mill sluice miller", mode=mode, limit=2)
        assert len(two["results"][0]["snippet"]) >= len(ten["results"][0]["snippet"])
        assert size(await lithos.call("lithos_retrieve", query="mill sluice")) <= 3_600
