"""Benchmark of a mixed load from many clients.

The benchmark checks that memory stays flat, calls stay fast, and no call fails.

Run `python -m bench.soak --minutes 5`. Each client owns a few notes and tasks, which it writes, changes,
finds and deletes, so that the size of the corpus does not change. Memory is sampled after the warm-up,
without file pages. `slope` is its least-squares slope in MiB per minute, and `second_slope` is the slope of
the second half. `p99_ratio` is the p99 of the second half divided by that of the first half. Both halves
cover only the time after the warm-up.

`--all-kinds` replaces six agents with other clients (`bench.soak_kinds`): the official SDK twice, stdio,
subscribers over SSE and WebSocket, and the editor of a person. `--strict` applies the targets for a machine
without other load: no error, `p99_ratio` at most 1.1, `second_slope` at most 0.1.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import trio
from attrs import asdict, frozen
from numpy.typing import NDArray

from bench.client import RawClient
from bench.corpus import queries
from bench.report import describe_error, print_report
from bench.server import Serving, data_directory, serving
from bench.soak_kinds import KINDS, Samples

CLIENTS = 32
#: Share of the time that is not judged, and its maximum in seconds. In this time, caches fill and the first
#: merges happen.
WARM_UP, WARM_UP_MOST = 0.3, 300.0
SAMPLE_EVERY = 0.5
#: Maximum seconds between two calls of a client. Without pauses, requests would only wait in the queue.
THINKING = 0.1
#: Seconds before a client reconnects.
AGAIN = 1.0
#: Number of notes that a client stores.
KEPT = 5
#: Expected refusals. They occur if another client was faster.
EXPECTED = frozenset({"claim_failed", "claim_not_found", "task_not_found"})
#: Maximum private memory of the process in MiB with a thousand notes, however long it runs.
LARGEST = 512.0
#: Maximum slope in MiB per minute, and duration in minutes below which the slope is not judged. The allocator
#: retains the memory of one large batch, and such a step looks like a slope.
STEEPEST, JUDGED_FROM = 15.0, 3.0
LARGEST_RATIO = 3.0
#: Targets for half an hour on a machine without other load.
AIMED_RATIO, AIMED_SLOPE = 1.1, 0.1


@frozen
class Soak:
    """The figures of a soak: latencies in ms, memory in MiB, slopes in MiB per minute."""

    minutes: float
    clients: int
    calls: int
    errors: int
    first_error: str | None
    p50: float
    p99: float
    p99_ratio: float
    memory: float
    slope: float
    second_slope: float
    first_p99: float
    second_p99: float
    tools: Mapping[str, int]

    def problems(self, *, strict: bool = False) -> list[str]:
        """Return the figures that exceed their limits.

        With `strict`, return those that miss their targets.
        """
        found = [f"{self.errors} of {self.calls} calls failed: {self.first_error}"] if self.errors else []
        ratio = AIMED_RATIO if strict else LARGEST_RATIO
        slope, steepest = (self.second_slope, AIMED_SLOPE) if strict else (self.slope, STEEPEST)
        if self.memory > LARGEST:
            found.append(f"{self.memory} MiB exceed the limit of {LARGEST}")
        if slope > steepest and (strict or self.minutes >= JUDGED_FROM):
            found.append(f"memory grows by {slope} MiB a minute; the limit is {steepest}")
        if self.p99_ratio > ratio:
            found.append(f"p99 grew {self.p99_ratio} times from the first half to the second")
        return found


class _Agent:
    """One client with its notes, its claims and its next call."""

    def __init__(self, number: int, samples: Samples) -> None:
        self._name = f"soak{number}"
        self._random = random.Random(number)
        self._texts = queries(number, 500)
        self._samples = samples
        self._notes: deque[str] = deque()
        self._written = 0

    async def work(self, client: RawClient) -> None:
        kinds = (self._search, self._search, self._search, self._read, self._list, self._write)
        more = (self._write, self._update, self._task, self._retrieve)
        while True:
            await self._random.choice(kinds + more)(client)
            await trio.sleep(self._random.random() * THINKING)

    async def _ask(self, client: RawClient, tool: str, **arguments: Any) -> dict[str, Any]:
        began = time.perf_counter()
        body = json.loads(await client.exchange(f"lithos_{tool}", arguments))
        self._samples.note(tool, began)
        result = body.get("result", {})
        answer: dict[str, Any] = result.get("structuredContent") or {}
        is_refused = answer.get("status") == "error" and answer.get("code") not in EXPECTED
        if "error" in body or result.get("isError") or is_refused or answer.get("degraded"):
            self._samples.failures.append(f"{tool}: {json.dumps(body)[:300]}")
        return answer

    @property
    def _text(self) -> str:
        return self._random.choice(self._texts)

    async def _search(self, client: RawClient) -> None:
        mode = self._random.choice(("hybrid", "fulltext", "semantic", "graph"))
        more = {"seed_ids": list(self._notes)[:1]} if mode == "graph" and self._notes else {}
        await self._ask(client, "search", query=self._text, mode=mode, **more)

    async def _read(self, client: RawClient) -> None:
        if self._notes:
            await self._ask(client, "read", id=self._random.choice(self._notes), agent_id=self._name)

    async def _list(self, client: RawClient) -> None:
        await self._ask(client, "list", limit=50, offset=self._random.randrange(500))

    async def _write(self, client: RawClient) -> None:
        self._written += 1
        content = "\n\n".join(self._text for _ in range(20))
        answer = await self._ask(
            client, "write", title=f"{self._name} {self._written}", content=content, agent=self._name
        )
        self._notes.append(answer.get("id", ""))
        if len(self._notes) > KEPT:
            await self._ask(client, "delete", id=self._notes.popleft(), agent=self._name)

    async def _update(self, client: RawClient) -> None:
        if self._notes:
            title = f"{self._name} again {self._written}"
            note = self._notes[-1]
            await self._ask(client, "write", id=note, title=title, content=self._text, agent=self._name)

    async def _task(self, client: RawClient) -> None:
        task = (await self._ask(client, "task_create", title=self._text, agent=self._name)).get("task_id", "")
        claim = {"task_id": task, "aspect": "all", "agent": self._name}
        await self._ask(client, "task_claim", **claim)
        await self._ask(client, "finding_post", task_id=task, agent=self._name, summary=self._text)
        await self._ask(client, "task_renew", **claim)
        await self._ask(client, "task_complete", task_id=task, agent=self._name)

    async def _retrieve(self, client: RawClient) -> None:
        await self._ask(client, "retrieve", query=self._text, agent_id=self._name)


async def soak(
    server: Serving,
    data: Path,
    seconds: float,
    clients: int = CLIENTS,
    told: Callable[[str], None] = lambda _: None,
    *,
    all_kinds: bool = False,
) -> Soak:
    """Load the server for `seconds` and return the figures after the warm-up.

    `told` is called every minute.
    """
    samples = Samples(time.perf_counter())
    others = KINDS[: max(0, clients - 1)] if all_kinds else ()
    with trio.move_on_after(seconds):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_sample, server, samples)
            nursery.start_soon(_tell, samples, told)
            for number in range(clients - len(others)):
                nursery.start_soon(_keep_on, samples, partial(_run, server, _Agent(number, samples)))
            for number, kind in enumerate(others):
                nursery.start_soon(_keep_on, samples, partial(kind, server, data, samples, number))
    return judge_soak(samples, seconds, clients)


async def _keep_on(samples: Samples, work: Callable[[], Awaitable[None]]) -> None:
    """Run a client. If its connection ends, count an error and reconnect."""
    while True:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - it is counted and told
            samples.failures.append(describe_error(error, 0))
        await trio.sleep(AGAIN)


async def _run(server: Serving, agent: _Agent) -> None:
    async with RawClient(server.host, server.port) as client:
        await agent.work(client)


async def _sample(server: Serving, samples: Samples) -> None:
    while True:
        samples.memory.append((time.perf_counter() - samples.begin, server.anonymous()))
        await trio.sleep(SAMPLE_EVERY)


async def _tell(samples: Samples, told: Callable[[str], None]) -> None:
    while True:
        await trio.sleep(60)
        now = time.perf_counter() - samples.begin
        memory = [size for at, size in samples.memory if at >= now - 60]
        taken = [took for at, took in samples.calls if at >= now - 60]
        told(
            f"minute {now / 60:.0f}: {np.median(memory):.0f} MiB, {len(taken)} calls, "
            f"p99 {_percentile(taken, 99)} ms, {len(samples.failures)} failed so far"
        )


def judge_soak(samples: Samples, seconds: float, clients: int) -> Soak:
    """Return the figures for the time after the warm-up."""
    warm = min(WARM_UP * seconds, WARM_UP_MOST)
    half = (warm + seconds) / 2
    memory = np.array([sample for sample in samples.memory if sample[0] >= warm])
    taken = [took for at, took in samples.calls if at >= warm]
    first = [took for at, took in samples.calls if warm <= at < half]
    second = [took for at, took in samples.calls if at >= half]
    return Soak(
        minutes=round(seconds / 60, 2),
        clients=clients,
        calls=len(samples.calls),
        errors=len(samples.failures),
        first_error=samples.failures[0] if samples.failures else None,
        p50=_percentile(taken, 50),
        p99=_percentile(taken, 99),
        p99_ratio=round(_percentile(second, 99) / _percentile(first, 99), 2),
        memory=float(memory[-1, 1]),
        slope=_slope(memory),
        second_slope=_slope(memory[memory[:, 0] >= half]),
        first_p99=_percentile(first, 99),
        second_p99=_percentile(second, 99),
        tools=dict(samples.tools.most_common()),
    )


def _slope(memory: NDArray[np.float64]) -> float:
    """Return the least-squares slope, in MiB per minute, of pairs (seconds, MiB)."""
    return round(float(np.polyfit(memory[:, 0], memory[:, 1], 1)[0]) * 60, 3)


def _percentile(seconds: Sequence[float], share: float) -> float:
    return round(1000 * float(np.percentile(seconds, share)), 2)


def run_soak(seconds: float, clients: int = CLIENTS, notes: int = 1_000, *, all_kinds: bool = False) -> Soak:
    """Run a soak on a new server with `notes` notes. Progress is printed to standard error every minute."""
    told = partial(print, file=sys.stderr, flush=True)
    with data_directory(notes) as data, serving(data) as server:
        return trio.run(partial(soak, server, data, seconds, clients, told, all_kinds=all_kinds))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--notes", type=int, default=1_000)
    parser.add_argument(
        "--all-kinds", action="store_true", help="use other kinds of clients in addition to agents"
    )
    parser.add_argument("--strict", action="store_true", help="judge by the targets instead of the limits")
    options = parser.parse_args()
    soaked = run_soak(60 * options.minutes, options.clients, options.notes, all_kinds=options.all_kinds)
    problems = soaked.problems(strict=options.strict)
    print_report("soak", notes=options.notes, **asdict(soaked), problems=problems)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
