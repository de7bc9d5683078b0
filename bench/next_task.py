"""`lithos_task_next` through `/mcp` by agents that race over thousands of tasks: how many it gives a second.

`python -m bench.next_task --agents 64 --tasks 5000`. `taken`: every agent takes tasks and keeps them, so that
the longer it goes the more held ones stand before the next free one. `worked`: every agent completes what it
got under its fence before it asks again, and half of the tasks wait for another one. `filtered`: as `taken`,
by agents of four projects, each of which wants a quarter of the tasks. `idle`: agents ask although everything
is held. It is an error if a task is given twice, left over, or given before what it waits for.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import trio

from bench.client import RawClient
from bench.report import print_report
from bench.server import Serving, data_directory, serving

PROJECTS = 4
Call = Callable[..., Awaitable[dict[str, Any]]]
#: What an agent does: its number, its way to call, and the tasks that were given so far.
Agent = Callable[[int, Call, list[str]], Awaitable[None]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.next_task", description=__doc__)
    parser.add_argument("--agents", type=int, default=64)
    parser.add_argument("--tasks", type=int, default=5_000)
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for name, agent in (("taken", _take), ("worked", _work), ("filtered", _take_of_project)):
        with data_directory(10) as data, serving(data) as server:
            figures |= trio.run(_measure, server, options, name, agent)
    print_report("next_task", agents=options.agents, tasks=options.tasks, **figures)


async def _measure(server: Serving, options: argparse.Namespace, name: str, agent: Agent) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(RawClient(server.host, server.port))
            for _ in range(options.agents)
        ]
        calls = [_caller(client) for client in clients]
        waits_for = await _create(calls, options.tasks, name == "worked")
        given: list[str] = []
        processor, began = server.processor_seconds(), time.perf_counter()
        await _together(calls, agent, given)
        seconds = time.perf_counter() - began
        if sorted(given) != sorted(waits_for):
            raise AssertionError(
                f"{len(given)} tasks given, {len(set(given))} different, of {len(waits_for)}"
            )
        place = {task: number for number, task in enumerate(given)}
        if any(place[before] > place[task] for task, before in waits_for.items() if before is not None):
            raise AssertionError("a task was given before the one it waits for")
        figures = {
            f"{name}_per_s": round(len(given) / seconds, 1),
            f"{name}_processor_ms": round((server.processor_seconds() - processor) / len(given) * 1000, 3),
        }
        if name != "worked":
            began = time.perf_counter()
            await _together(calls, _ask_in_vain, given)
            figures[f"{name}_idle_per_s"] = round(options.agents * 20 / (time.perf_counter() - began), 1)
    return figures


async def _create(calls: list[Call], tasks: int, has_edges: bool) -> dict[str, str | None]:
    """New tasks, and what each waits for: with edges, every other one for the one before it."""
    waits_for: dict[str, str | None] = {}

    async def create(number: int, call: Call) -> None:
        before = None
        for position in range(number, tasks, len(calls)):
            depends_on = [before] if before is not None and has_edges else []
            metadata = {"project": f"project-{position % PROJECTS}"}
            made = await call(
                "task_create",
                title=f"Task {position}",
                agent="bench",
                metadata=metadata,
                depends_on=depends_on,
            )
            waits_for[made["task_id"]] = before if has_edges else None
            before = made["task_id"] if before is None else None

    async with trio.open_nursery() as nursery:
        for number, call in enumerate(calls):
            nursery.start_soon(create, number, call)
    return waits_for


async def _together(calls: list[Call], agent: Agent, given: list[str]) -> None:
    async with trio.open_nursery() as nursery:
        for number, call in enumerate(calls):
            nursery.start_soon(agent, number, call, given)


async def _take(number: int, call: Call, given: list[str], **wanted: Any) -> None:
    while (answer := await call("task_next", agent=f"agent-{number}", **wanted))["task"] is not None:
        given.append(answer["task"]["id"])


async def _take_of_project(number: int, call: Call, given: list[str]) -> None:
    await _take(number, call, given, project=f"project-{number % PROJECTS}")


async def _work(number: int, call: Call, given: list[str]) -> None:
    by = {"agent": f"agent-{number}"}
    while True:
        answer = await call("task_next", **by)
        if answer["task"] is not None:
            task = answer["task"]["id"]
            given.append(task)
            await call("task_complete", task_id=task, fence=answer["fence"], **by)
        elif not answer["waiting"] + answer["blocked"]:
            return


async def _ask_in_vain(number: int, call: Call, given: list[str]) -> None:
    for _ in range(20):
        answer = await call("task_next", agent=f"agent-{number}", project=f"project-{number % PROJECTS}")
        if answer["task"] is not None or answer["waiting"] == 0:
            raise AssertionError(answer)


def _caller(client: RawClient) -> Call:
    async def call(tool: str, **arguments: Any) -> dict[str, Any]:
        body = await client.exchange(f"lithos_{tool}", arguments)
        answer: dict[str, Any] = json.loads(body)["result"]["structuredContent"]
        if "code" in answer:
            raise AssertionError(answer)
        return answer

    return call


if __name__ == "__main__":
    main()
