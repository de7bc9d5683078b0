"""Everything that is measured at one size of the knowledge base, side by side in one run."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import trio
from attrs import evolve, frozen

from bench.bare import bare_serving
from bench.calls import measure_calls
from bench.claims import measure_claims
from bench.client import Latencies, Request, drive
from bench.corpus import queries
from bench.disk import write_durably
from bench.figures import Actor, Figures, Front, Memory, Writes
from bench.first_index import measure_floor
from bench.hot_search import profile_searches
from bench.report import middle, middle_of
from bench.scrape import Histogram, read_actors
from bench.search import NOOP, WARM_UP
from bench.server import Serving, data_directory, serving
from bench.stages import Stages
from bench.starts import measure_starts
from bench.targets import LARGE, USUAL
from bench.write import UPDATED, measure_beside_searches, median_ratio, updating, writing, written_ids

CLIENTS = 16
SEARCHES = 2_000
AGENTS, ASPECTS = 64, 15
#: Kinds of `bench.calls` that are measured at sizes other than the usual one.
FEW_KINDS = ("read", "list", "list_tag", "related", "hybrid", "retrieve")
#: Seconds a stage may take, and how many more for each thousand notes in a first start.
LIMIT, FIRST_START_LIMIT, FIRST_START_LIMIT_PER_1000 = 180.0, 120.0, 5.0


@frozen
class Effort:
    """How much is measured; `seconds` is the length of a round of searchers and writers."""

    rounds: int = 5
    calls: int = 400
    writes: int = 480
    seconds: float = 10.0

    def at(self, notes: int) -> Effort:
        """Less where a call takes longer."""
        if notes < LARGE:
            return self
        return evolve(self, rounds=min(3, self.rounds), calls=self.calls // 2, writes=self.writes // 2)

    @property
    def few_rounds(self) -> int:
        """Rounds of what takes long."""
        return min(3, self.rounds)


def measure_size(notes: int, usual: int, effort: Effort, until: float) -> Figures:
    """The figures at one size, as far as its stages succeed before `until` (monotonic seconds).

    The `usual` size has all kinds of calls, the racing claims and the profile; the libraries alone are
    measured up to the usual size only.
    """
    stages, effort = Stages(until), effort.at(notes)
    figures = Figures(notes)
    with ExitStack() as stack:
        data = stages.run(f"{notes} notes: corpus", 900, lambda _: stack.enter_context(data_directory(notes)))
        if data is not None:
            if notes <= USUAL:
                floor = stages.run(
                    "libraries alone", LIMIT, lambda left: measure_floor(data / "knowledge", timeout=left)
                )
                figures = evolve(figures, floor_s=floor)
            figures = _measure_served(figures, data, notes == usual, effort, stages)
            starts = stages.run("starts", LIMIT, lambda left: measure_starts(data, effort.few_rounds, left))
            figures = evolve(figures, starts=starts)
            if notes == usual:
                told = stages.run("profile", LIMIT, lambda left: profile_searches(data, timeout=left))
                figures = evolve(figures, profile=told)
        stages.close(stack)
    return evolve(figures, problems=tuple(stages.problems), seconds=stages.seconds)


def _measure_served(figures: Figures, data: Path, is_usual: bool, effort: Effort, stages: Stages) -> Figures:
    """What one server that has just indexed everything can be asked."""
    limit = FIRST_START_LIMIT + FIRST_START_LIMIT_PER_1000 * figures.notes / 1000
    few, calls = effort.few_rounds, max(1, effort.calls // 4)
    with ExitStack() as stack:
        server = stages.run(
            "first start", limit, lambda left: stack.enter_context(serving(data, patience=left))
        )
        if server is None:
            return figures
        bare = stages.run("bare SDK", 60, lambda _: stack.enter_context(bare_serving()))
        figures = evolve(figures, index_s=server.searchable)
        if bare is not None:
            front = stages.run_async("no-op, hybrid", LIMIT, _measure_front, server, bare, effort)
            figures = evolve(figures, front=front)
        kinds = () if is_usual else FEW_KINDS
        figures = evolve(
            figures,
            calls=stages.run_async("calls", LIMIT, measure_calls, server, 1, effort.rounds, calls, kinds),
            memory=stages.run_async("memory", LIMIT, _memory_after_searches, server),
            writes=stages.run_async("writes", LIMIT, _measure_writes, server, data, effort),
            mix=stages.run_async(
                "writes beside searches", LIMIT, measure_beside_searches, server, few, effort.seconds
            ),
            claims=stages.run_async("claims", LIMIT, measure_claims, server, AGENTS, ASPECTS, few)
            if is_usual
            else None,
        )
        stages.close(stack)
    return figures


async def _measure_front(server: Serving, bare: Serving, effort: Effort) -> Front:
    """Rounds that alternate the bare no-op, ours, and hybrid searches; of 1 client, then of 16."""
    texts = queries(3, 5_000)

    def search(number: int) -> Request:
        return "lithos_search", {"query": texts[number % len(texts)], "mode": "hybrid"}

    asked: dict[str, tuple[Serving, Callable[[int], Request]]] = {
        "bare": (bare, lambda _: NOOP),
        "noop": (server, lambda _: NOOP),
        "hybrid": (server, search),
    }
    for where, request in asked.values():
        await drive(where, 1, WARM_UP, request)
    told: list[dict[str, list[Latencies]]] = []
    for clients in (1, CLIENTS):
        rounds: dict[str, list[Latencies]] = {kind: [] for kind in asked}
        for _ in range(effort.rounds):
            for kind, (where, request) in asked.items():
                rounds[kind].append(await drive(where, clients, effort.calls, request))
        told.append(rounds)
    alone, together = told
    return Front(
        {kind: Latencies(**middle_of(of_kind)) for kind, of_kind in alone.items()},
        {kind: Latencies(**middle_of(of_kind)) for kind, of_kind in together.items()},
        overhead=median_ratio(alone["noop"], alone["bare"]),
        search_ratio=median_ratio(alone["hybrid"], alone["noop"]),
    )


async def _memory_after_searches(server: Serving) -> Memory:
    texts = queries(4, SEARCHES)
    await drive(server, CLIENTS, SEARCHES, lambda number: ("lithos_search", {"query": texts[number]}))
    return Memory(server.resident(), server.peak())


async def _measure_writes(server: Serving, data: Path, effort: Effort) -> Writes:
    """Rounds of no-ops, one writer, one who updates, 16 writers, and four threads with the 16's bytes."""
    texts = queries(5, 2_000)
    rounds: dict[str, list[Latencies]] = {kind: [] for kind in ("noop", "alone", "update", "together")}
    raw: list[float] = []
    actors: list[tuple[Actor, ...]] = []
    few = max(1, effort.writes // 8)
    await drive(server, 4, 40, writing(texts, "warm"))
    known = await written_ids(server, UPDATED)
    for number in range(effort.few_rounds):
        rounds["noop"].append(await drive(server, 1, 5 * few, lambda _: NOOP))
        rounds["alone"].append(await drive(server, 1, few, writing(texts, f"alone-{number}")))
        rounds["update"].append(await drive(server, 1, few, updating(texts, known, f"update-{number}")))
        before = await trio.to_thread.run_sync(_scrape_actors, server)
        series = f"together-{number}"
        begun = time.perf_counter()
        rounds["together"].append(await drive(server, CLIENTS, effort.writes, writing(texts, series)))
        after = await trio.to_thread.run_sync(_scrape_actors, server)
        actors.append(actors_between(before, after, time.perf_counter() - begun))
        made = [path.read_bytes() for path in (data / "knowledge").glob(f"measured-{series}-*.md")]
        if len(made) != effort.writes:
            raise AssertionError(f"{len(made)} files were found of {effort.writes} writes")
        raw.append(write_durably(data / f"disk-{number}", made))
    return Writes(
        alone=Latencies(**middle_of(rounds["alone"])),
        update=Latencies(**middle_of(rounds["update"])),
        together=Latencies(**middle_of(rounds["together"])),
        raw=middle(raw, 1),
        ratio=middle([one.rate / files for one, files in zip(rounds["together"], raw, strict=True)]),
        to_noop=median_ratio(rounds["alone"], rounds["noop"]),
        update_to_noop=median_ratio(rounds["update"], rounds["noop"]),
        actors=actors[-1],
    )


def _scrape_actors(server: Serving) -> Mapping[str, Histogram]:
    with urllib.request.urlopen(f"http://{server.host}:{server.port}/metrics") as response:
        return read_actors(response.read().decode())


def actors_between(
    before: Mapping[str, Histogram], after: Mapping[str, Histogram], seconds: float
) -> tuple[Actor, ...]:
    """What each actor that worked did in those seconds, the busiest first."""
    rows: list[Actor] = []
    for name, histogram in after.items():
        done = histogram.since(before.get(name))
        if done.count:
            p50, p95 = (round(1000 * (done.quantile(share) or 0), 2) for share in (0.5, 0.95))
            rows.append(Actor(name, round(done.total / seconds, 3), int(done.count), p50, p95))
    return tuple(sorted(rows, key=lambda row: -row.busy))
