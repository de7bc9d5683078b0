"""Board and tools, which must show the same tasks for any dependencies (docs/spec/console.md §1)."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from lithos.kernel.values.errors import TaskNotFound
from lithos.tasks.service.board import BLOCKED, CLAIMED, DONE, EPICS, GATES, READY, BoardFilter, BoardReading
from tests.servers import MISSING_ID, Clock, Lithos, serving


async def titles(lithos: Lithos, column: str, **wanted: str) -> list[str]:
    """Return the titles in a column in order. The pages have seven tasks each."""
    found: list[str] = []
    while True:
        page = await lithos.server.get(BoardReading).columns(
            BoardFilter(**wanted), 7, only=column, offset=len(found)
        )
        found += [card.task.title for card in page[column].cards]
        if len(found) >= page[column].total:
            return found


async def told(lithos: Lithos, tool: str, **more: object) -> list[str]:
    """Return the titles that a tool lists."""
    return [task["title"] for task in (await lithos.call(tool, limit=1_000, **more))["tasks"]]


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 20))])
async def test_board_columns_match_the_tool_lists(tmp_path: Path, seed: int) -> None:
    random, clock = Random(seed), Clock()
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        ids: list[str] = []
        for number in range(60):
            clock.advance(seconds=1)
            kind = random.choice(["task"] * 6 + ["epic", "gate", "timer"])
            metadata = {"project": random.choice(["atlas", 'ünï"q/', ["atlas", "wiki"]])}
            if kind == "timer":
                minutes = random.choice([1, 600])
                opens = clock.now.replace(microsecond=0).isoformat()
                metadata |= {
                    "gate_type": "timer",
                    "ready_at": opens if minutes == 1 else "2030-01-01T00:00:00Z",
                }
            elif kind == "gate":
                metadata |= {"gate_type": "ci"}
            answer = await lithos.call(
                "lithos_task_create",
                title=f"T{number}",
                agent=random.choice(["ann", "bob"]),
                task_type="gate" if kind == "timer" else kind,
                metadata=metadata,
                tags=random.sample(["a", "b", "ç"], 2),
                depends_on=random.sample(ids, min(len(ids), random.choice([0, 0, 1, 2]))),
                parent_task_id=random.choice([None, None, *ids[-9:]]),
            )
            ids.append(answer["task_id"])
            if kind in ("gate", "timer"):
                for _ in range(2):
                    later = random.choice(ids)
                    await lithos.call(
                        "lithos_task_edge_upsert", from_task_id=ids[-1], to_task_id=later,
                        type="waits_on_gate", agent="x",
                    )  # fmt: skip
        for task in random.sample(ids, 20):
            end = random.choice(["complete", "cancel", "claim"])
            more = {"aspect": "work"} if end == "claim" else {}
            await lithos.call(f"lithos_task_{end}", task_id=task, agent=random.choice(["ann", "bob"]), **more)
        clock.advance(minutes=5)

        for wanted in ({}, {"project": "atlas"}, {"project": 'ünï"q/'}, {"tag": "ç"}):
            asked = {
                "tags" if key == "tag" else key: [value] if key == "tag" else value
                for key, value in wanted.items()
            }
            ready, blocked = (
                await told(lithos, "lithos_task_ready", **asked),
                await told(lithos, "lithos_task_blocked", **asked),
            )
            assert ready or wanted
            columns = {name: await titles(lithos, name, **wanted) for name in (READY, BLOCKED, CLAIMED)}
            held = set(columns[CLAIMED])
            assert columns[READY] == [title for title in ready if title not in held]
            assert columns[BLOCKED] == [title for title in blocked if title not in held]
        every = (await lithos.call("lithos_task_list", with_claims=True))["tasks"]
        assert await titles(lithos, CLAIMED) == [task["title"] for task in every if task["claims"]]
        closed = [task for task in every if task["status"] != "open"]
        assert set(await titles(lithos, DONE)) == {task["title"] for task in closed}
        for column, kind in ((GATES, "gate"), (EPICS, "epic")):
            open_ones = [
                task["title"] for task in every if (task["status"], task["task_type"]) == ("open", kind)
            ]
            assert await titles(lithos, column) == open_ones
        mine = {
            task["title"]
            for task in every
            if task["created_by"] == "ann" or any(claim["agent"] == "ann" for claim in task["claims"])
        }
        shown = [
            await titles(lithos, name, agent="ann") for name in (READY, BLOCKED, CLAIMED, DONE, GATES, EPICS)
        ]
        assert {title for some in shown for title in some} == mine


async def test_task_trees_are_limited_and_show_each_subtree_once(tmp_path: Path) -> None:
    async with serving(tmp_path, settled=False) as lithos:

        async def create(title: str, *before: str) -> str:
            answer = await lithos.call("lithos_task_create", title=title, agent="a", depends_on=list(before))
            return str(answer["task_id"])

        last = first = await create("0")
        for number in range(1, 9):
            last = await create(str(number), last)
        middle = [await create("left", first), await create("right", first)]
        joined = await create("joined", *middle)
        for number in range(90):
            await create(f"w{number}", joined)

        (branch,) = (await lithos.server.get(BoardReading).read(last)).waits_for
        depth = 1
        while branch.branches:
            (branch,), depth = branch.branches, depth + 1
        assert (depth, branch.is_cut, branch.task.title) == (5, True, "3")
        left, right = (await lithos.server.get(BoardReading).read(joined)).waits_for
        assert [(one.task.title, one.is_again) for one in (*left.branches, *right.branches)] == [
            ("0", False), ("0", True),
        ]  # fmt: skip
        assert len((await lithos.server.get(BoardReading).read(joined)).waited_for_by) == 80
        effects = await lithos.server.get(BoardReading).effects(first)
        assert {one.title for one, _ in effects.direct} == {"1", "left", "right"}
        assert len(effects.behind) == 7 + 1 + 90
        with pytest.raises(TaskNotFound):
            await lithos.server.get(BoardReading).effects(MISSING_ID)
