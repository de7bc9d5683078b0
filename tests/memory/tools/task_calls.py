"""Helpers for tests of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.servers import Lithos

RECORD = [
    "id", "title", "description", "status", "task_type", "created_by", "created_at", "resolved_at", "tags",
    "metadata", "outcome",
]  # fmt: skip
#: Tools that have no `agent` parameter, or whose `agent` is not the caller.
READS = {
    "task_list", "task_status", "task_get", "task_ready", "task_blocked", "task_children", "task_edge_list",
    "finding_list",
}  # fmt: skip


async def call(lithos: Lithos, tool: str, /, **arguments: Any) -> Any:
    """Call a `lithos_` tool, by default as agent `ann`. Assert that the tool does not refuse."""
    if tool not in READS:
        arguments = {"agent": "ann"} | arguments
    answer = await lithos.call(f"lithos_{tool}", **arguments)
    assert "code" not in answer, answer
    return answer


async def create(lithos: Lithos, title: str = "T", **fields: Any) -> str:
    """Create a task. Return its id."""
    answer = await call(lithos, "task_create", title=title, **fields)
    assert next(iter(answer)) == "task_id"
    task_id: str = answer["task_id"]
    return task_id


async def gate(lithos: Lithos, title: str = "G", **metadata: Any) -> str:
    """Create a gate, by default a human gate. Return its id."""
    return await create(lithos, title, task_type="gate", metadata={"gate_type": "human"} | metadata)


async def link(lithos: Lithos, source: str, target: str, kind: str = "blocks", **more: Any) -> Any:
    """Link two tasks. The answer may be a refusal."""
    return await lithos.call(
        "lithos_task_edge_upsert",
        **{"from_task_id": source, "to_task_id": target, "type": kind, "agent": "ann"} | more,
    )


async def record(lithos: Lithos, task_id: str) -> dict[str, Any]:
    """Return the record of a task."""
    answer = await call(lithos, "task_get", task_id=task_id)
    assert list(answer) == ["task"]
    task: dict[str, Any] = answer["task"]
    assert list(task) == RECORD
    return task


def ids(answer: Mapping[str, Any]) -> list[str]:
    """Return the ids of the listed tasks in order."""
    return [task["id"] for task in answer["tasks"]]
