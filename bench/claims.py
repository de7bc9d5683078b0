"""Claims through `/mcp` by agents that race: how many are granted a second, each in one durable commit.

`python -m bench.claims --agents 64`. `apart`: every agent claims aspects of its own, so that every call is
granted. `racing`: all agents walk the same aspects in the same order, so that each is granted once
and refused to all others; it is an error if it is not exactly once, or if a fence repeats.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import trio
from attrs import frozen

from bench.client import RawClient
from bench.report import middle, print_report
from bench.server import Serving, data_directory, serving


@frozen
class _Run:
    """Fences granted, calls answered, and the seconds it took."""

    fences: list[int]
    answers: int
    seconds: float

    @property
    def granted(self) -> float:
        return len(self.fences) / self.seconds

    @property
    def answered(self) -> float:
        return self.answers / self.seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.claims", description=__doc__)
    parser.add_argument("--agents", type=int, default=64)
    parser.add_argument("--aspects", type=int, default=50, help="that each agent asks for in one round")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with data_directory(10) as data, serving(data) as server:
        trio.run(_measure, server, options)


async def _measure(server: Serving, options: argparse.Namespace) -> None:
    apart: list[_Run] = []
    racing: list[_Run] = []
    await _run(server, options, lambda agent, number: f"warm {agent} {number}")
    for _ in range(options.rounds):
        apart.append(await _run(server, options, lambda agent, number: f"{agent} {number}"))
        racing.append(await _run(server, options, lambda _, number: f"{number}"))
        if len(racing[-1].fences) != options.aspects:
            raise AssertionError(f"{len(racing[-1].fences)} grants of {options.aspects} aspects")
    fences = [fence for run in (*apart, *racing) for fence in run.fences]
    if len(set(fences)) != len(fences):
        raise AssertionError("a fence was granted twice")
    print_report(
        "claims",
        agents=options.agents,
        aspects=options.aspects,
        apart_granted_per_s=middle([run.granted for run in apart], 1),
        racing_granted_per_s=middle([run.granted for run in racing], 1),
        racing_answered_per_s=middle([run.answered for run in racing], 1),
        resident_mib=server.resident(),
    )


async def _run(server: Serving, options: argparse.Namespace, aspect: Callable[[int, int], str]) -> _Run:
    """One new task, claimed from one connection per agent; connecting is not measured."""
    fences: list[int] = []
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(RawClient(server.host, server.port))
            for _ in range(options.agents)
        ]
        task = (await _call(clients[0], "lithos_task_create", title="Race", agent="bench"))["task_id"]

        async def claim_all(number: int, client: RawClient) -> None:
            for position in range(options.aspects):
                wanted = {"task_id": task, "aspect": aspect(number, position), "agent": f"agent-{number}"}
                answer = await _call(client, "lithos_task_claim", **wanted)
                if "fence" in answer:
                    fences.append(answer["fence"])
                elif answer["code"] != "claim_failed":
                    raise AssertionError(answer)

        began = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for number, client in enumerate(clients):
                nursery.start_soon(claim_all, number, client)
        seconds = time.perf_counter() - began
    return _Run(fences, options.agents * options.aspects, seconds)


async def _call(client: RawClient, tool: str, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(await client.exchange(tool, arguments))["result"]["structuredContent"]
    return answer


if __name__ == "__main__":
    main()
