"""Claims through `/mcp` by agents that race: how many are granted a second, each in one durable commit.

`python -m bench.claims --agents 64`. `apart`: every agent claims aspects of its own, so that every call is
granted. `racing`: all agents walk the same aspects in the same order, so that each is granted once
and refused to all others; it is an error if it is not exactly once, or if a fence repeats. One task may have
1,000 aspects at most, which is what agents times aspects may be.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import trio
from attrs import asdict, frozen

from bench.client import Latencies, RawClient, summarise
from bench.report import middle, middle_of, print_report
from bench.server import Serving, data_directory, serving


@frozen
class _Run:
    """Fences granted, how long answers took, and the seconds of all."""

    fences: list[int]
    waited: Latencies
    seconds: float

    @property
    def granted(self) -> float:
        return len(self.fences) / self.seconds


@frozen
class ClaimFigures:
    """Grants a second apart and racing, and what each racing agent waited for an answer, refused or not."""

    agents: int
    apart_granted_per_s: float
    racing_granted_per_s: float
    racing: Latencies


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.claims", description=__doc__)
    parser.add_argument("--agents", type=int, default=64)
    parser.add_argument("--aspects", type=int, default=15, help="that each agent asks for in one round")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with data_directory(10) as data, serving(data) as server:
        figures = trio.run(measure_claims, server, options.agents, options.aspects, options.rounds)
        print_report("claims", aspects=options.aspects, **asdict(figures), resident_mib=server.resident())


async def measure_claims(server: Serving, agents: int, aspects: int, rounds: int) -> ClaimFigures:
    """Rounds of agents apart and racing, after one that warms up."""
    apart: list[_Run] = []
    racing: list[_Run] = []
    await _run(server, agents, aspects, lambda agent, number: f"warm {agent} {number}")
    for _ in range(rounds):
        apart.append(await _run(server, agents, aspects, lambda agent, number: f"{agent} {number}"))
        racing.append(await _run(server, agents, aspects, lambda _, number: f"{number}"))
        if len(racing[-1].fences) != aspects:
            raise AssertionError(f"{len(racing[-1].fences)} grants of {aspects} aspects")
    fences = [fence for run in (*apart, *racing) for fence in run.fences]
    if len(set(fences)) != len(fences):
        raise AssertionError("a fence was granted twice")
    return ClaimFigures(
        agents=agents,
        apart_granted_per_s=middle([run.granted for run in apart], 1),
        racing_granted_per_s=middle([run.granted for run in racing], 1),
        racing=Latencies(**middle_of([run.waited for run in racing])),
    )


async def _run(server: Serving, agents: int, aspects: int, aspect: Callable[[int, int], str]) -> _Run:
    """One new task, claimed from one connection per agent; connecting is not measured."""
    fences: list[int] = []
    waited: list[float] = []
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(RawClient(server.host, server.port)) for _ in range(agents)
        ]
        task = (await _call(clients[0], "lithos_task_create", title="Race", agent="bench"))["task_id"]

        async def claim_all(number: int, client: RawClient) -> None:
            for position in range(aspects):
                wanted = {"task_id": task, "aspect": aspect(number, position), "agent": f"agent-{number}"}
                asked = time.perf_counter()
                answer = await _call(client, "lithos_task_claim", **wanted)
                waited.append(time.perf_counter() - asked)
                if "fence" in answer:
                    fences.append(answer["fence"])
                elif answer["code"] != "claim_failed":
                    raise AssertionError(answer)

        began, processor = time.perf_counter(), server.processor_seconds()
        async with trio.open_nursery() as nursery:
            for number, client in enumerate(clients):
                nursery.start_soon(claim_all, number, client)
        seconds = time.perf_counter() - began
        used = server.processor_seconds() - processor
    return _Run(fences, summarise(waited, seconds, used), seconds)


async def _call(client: RawClient, tool: str, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(await client.exchange(tool, arguments))["result"]["structuredContent"]
    return answer


if __name__ == "__main__":
    main()
