"""A mixed load from many clients for minutes: whether memory stays flat, calls stay quick and none fails.

`python -m bench.soak --minutes 5`. Each client owns a few notes and tasks, which it writes, changes,
finds and removes again, so that the corpus keeps its size. After the warm-up memory is sampled, without
pages of files: `slope` is its least-squares line in MiB a minute, `p99_ratio` the p99 of the second half
to that of the first.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import trio
from attrs import Factory, define, frozen

from bench.client import RawClient
from bench.corpus import queries
from bench.report import print_report
from bench.server import Serving, data_directory, serving

CLIENTS = 32
#: Share of the time that is not judged: caches fill, the first merges happen.
WARM_UP = 0.3
SAMPLE_EVERY = 0.5
#: Seconds a client thinks between two calls, at most: a machine that only queues tells little.
THINKING = 0.1
#: Notes that a client keeps.
KEPT = 5
#: Refusals that are part of the game: another client was quicker.
EXPECTED = frozenset({"claim_failed", "claim_not_found", "task_not_found"})
#: MiB that the process may have of its own, with a thousand notes, after any time.
LARGEST = 512.0
#: MiB a minute. Over less than so many minutes the line says nothing: the allocator keeps what one large
#: batch took, and a step looks like a slope.
STEEPEST, JUDGED_FROM = 15.0, 3.0
LARGEST_RATIO = 3.0


@define
class Samples:
    """What was seen: (seconds since the begin, seconds it took) of calls, (seconds, MiB) of memory."""

    calls: list[tuple[float, float]] = Factory(list)
    memory: list[tuple[float, float]] = Factory(list)
    tools: Counter[str] = Factory(Counter)
    failures: list[str] = Factory(list)


@frozen
class Soak:
    """The figures; latencies in ms, memory in MiB."""

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

    def problems(self) -> list[str]:
        """What is not as it should be."""
        found = []
        if self.errors:
            found.append(f"{self.errors} calls failed: {self.first_error}")
        if self.memory > LARGEST:
            found.append(f"{self.memory} MiB are more than {LARGEST}")
        if self.slope > STEEPEST and self.minutes >= JUDGED_FROM:
            found.append(f"memory grows by {self.slope} MiB a minute")
        if self.p99_ratio > LARGEST_RATIO:
            found.append(f"p99 grew {self.p99_ratio} times from the first half to the second")
        return found


class _Agent:
    """One client: what it owns, and what it asks next."""

    def __init__(self, number: int, samples: Samples, begin: float) -> None:
        self._name = f"soak{number}"
        self._random = random.Random(number)
        self._texts = queries(number, 500)
        self._samples = samples
        self._begin = begin
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
        ended = time.perf_counter()
        self._samples.calls.append((ended - self._begin, ended - began))
        self._samples.tools[tool] += 1
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
    server: Serving, seconds: float, clients: int = CLIENTS, told: Callable[[str], None] = lambda _: None
) -> Soak:
    """Load the server for so long; the figures of what came after the warm-up. `told` hears every minute."""
    samples, begin = Samples(), time.perf_counter()
    with trio.move_on_after(seconds):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_sample, server, samples, begin)
            nursery.start_soon(_tell, samples, begin, told)
            for number in range(clients):
                nursery.start_soon(_run, server, _Agent(number, samples, begin))
    return _judge(samples, seconds, clients)


async def _run(server: Serving, agent: _Agent) -> None:
    async with RawClient(server.host, server.port) as client:
        await agent.work(client)


async def _sample(server: Serving, samples: Samples, begin: float) -> None:
    while True:
        samples.memory.append((time.perf_counter() - begin, server.anonymous()))
        await trio.sleep(SAMPLE_EVERY)


async def _tell(samples: Samples, begin: float, told: Callable[[str], None]) -> None:
    while True:
        await trio.sleep(60)
        now = time.perf_counter() - begin
        memory = [size for at, size in samples.memory if at >= now - 60]
        taken = [took for at, took in samples.calls if at >= now - 60]
        told(
            f"minute {now / 60:.0f}: {np.median(memory):.0f} MiB, {len(taken)} calls, "
            f"p99 {_percentile(taken, 99)} ms, {len(samples.failures)} failed so far"
        )


def _judge(samples: Samples, seconds: float, clients: int) -> Soak:
    warm = WARM_UP * seconds
    half = (warm + seconds) / 2
    memory = np.array([sample for sample in samples.memory if sample[0] >= warm])
    slope = float(np.polyfit(memory[:, 0], memory[:, 1], 1)[0]) * 60
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
        slope=round(slope, 2),
    )


def _percentile(seconds: Sequence[float], share: float) -> float:
    return round(1000 * float(np.percentile(seconds, share)), 2)


def run_soak(seconds: float, clients: int = CLIENTS, notes: int = 1_000) -> Soak:
    """The same on a server of its own with so many notes; every minute is told on standard error."""
    with data_directory(notes) as data, serving(data) as server:
        return trio.run(soak, server, seconds, clients, partial(print, file=sys.stderr, flush=True))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--notes", type=int, default=1_000)
    options = parser.parse_args()
    soaked = run_soak(60 * options.minutes, options.clients, options.notes)
    figures = {name: getattr(soaked, name) for name in Soak.__annotations__}
    print_report("soak", notes=options.notes, **figures, problems=soaked.problems())
    sys.exit(1 if soaked.problems() else 0)


if __name__ == "__main__":
    main()
