"""Everything that is measured at one size of the knowledge base, side by side in one run."""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

import trio
from attrs import frozen

from bench.bare import bare_serving
from bench.client import Latencies, Request, drive
from bench.corpus import queries
from bench.disk import write_durably
from bench.first_index import measure_floor
from bench.report import middle, middle_of
from bench.search import NOOP, WARM_UP
from bench.server import Serving, data_directory, serving
from bench.starts import measure_starts
from bench.targets import Actor, Figures
from bench.write import writing
from lithos.cli.top.view import ACTORS, Histogram, read_scrape

CLIENTS = 16
SEARCHES = 2_000


@frozen
class Effort:
    """How much is measured."""

    rounds: int = 5
    calls: int = 400
    writes: int = 480


@frozen
class _Calls:
    """Medians by kind, and medians of ratios inside rounds."""

    kinds: Mapping[str, Latencies]
    overhead: float
    search_ratio: float


@frozen
class _Writes:
    alone: Latencies
    together: Latencies
    raw: float
    ratio: float
    actors: tuple[Actor, ...]


def measure_size(
    notes: int, effort: Effort, profile: Callable[[Path], str] | None
) -> tuple[Figures, str | None]:
    """The figures at one size, and what `profile` says of its data directory afterwards."""
    with data_directory(notes) as data:
        _say(f"{notes} notes: the libraries alone")
        floor = measure_floor(data / "knowledge")
        _say("first start")
        with serving(data) as server, bare_serving() as bare:
            _say("calls")
            alone = trio.run(_measure_calls, server, bare, 1, effort)
            together = trio.run(_measure_calls, server, bare, CLIENTS, effort)
            memory = trio.run(_memory_after_searches, server)
            _say("writes")
            writes = trio.run(_measure_writes, server, data, effort)
            index_s, peak = server.searchable, server.peak()
        _say("starts")
        starts = measure_starts(data, min(3, effort.rounds))
        told = None if profile is None else profile(data)
    figures = Figures(
        notes=notes,
        index_s=index_s,
        floor_s=floor,
        alone=alone.kinds,
        together=together.kinds,
        overhead=alone.overhead,
        search_ratio=alone.search_ratio,
        resident_mib=memory,
        peak_mib=peak,
        write_alone=writes.alone,
        write_together=writes.together,
        raw_files_per_s=writes.raw,
        write_ratio=writes.ratio,
        starts=starts,
        actors=writes.actors,
    )
    return figures, told


async def _measure_calls(server: Serving, bare: Serving, clients: int, effort: Effort) -> _Calls:
    """Rounds that alternate the bare no-op, ours, and hybrid searches."""
    texts = queries(3, 5_000)

    def search(number: int) -> Request:
        return "lithos_search", {"query": texts[number % len(texts)], "mode": "hybrid"}

    asked: dict[str, tuple[Serving, Callable[[int], Request]]] = {
        "bare": (bare, lambda _: NOOP),
        "noop": (server, lambda _: NOOP),
        "hybrid": (server, search),
    }
    rounds: dict[str, list[Latencies]] = {kind: [] for kind in asked}
    for where, request in asked.values():
        await drive(where, 1, WARM_UP, request)
    for _ in range(effort.rounds):
        for kind, (where, request) in asked.items():
            rounds[kind].append(await drive(where, clients, effort.calls, request))
    return _Calls(
        {kind: Latencies(**middle_of(of_kind)) for kind, of_kind in rounds.items()},
        overhead=_ratio(rounds["noop"], rounds["bare"]),
        search_ratio=_ratio(rounds["hybrid"], rounds["noop"]),
    )


def _ratio(ones: list[Latencies], others: list[Latencies]) -> float:
    return middle([one.p50 / other.p50 for one, other in zip(ones, others, strict=True)])


async def _memory_after_searches(server: Serving) -> float:
    texts = queries(4, SEARCHES)
    await drive(server, CLIENTS, SEARCHES, lambda number: ("lithos_search", {"query": texts[number]}))
    return server.resident()


async def _measure_writes(server: Serving, data: Path, effort: Effort) -> _Writes:
    """Rounds of one writer, of 16, and of four threads that write the very bytes the 16 made."""
    texts = queries(5, 2_000)
    alone: list[Latencies] = []
    together: list[Latencies] = []
    raw: list[float] = []
    actors: list[tuple[Actor, ...]] = []
    await drive(server, 4, 40, writing(texts, "warm"))
    for number in range(min(3, effort.rounds)):
        alone.append(await drive(server, 1, max(1, effort.writes // 8), writing(texts, f"alone-{number}")))
        before = await trio.to_thread.run_sync(_scrape_actors, server)
        series = f"together-{number}"
        together.append(await drive(server, CLIENTS, effort.writes, writing(texts, series)))
        after = await trio.to_thread.run_sync(_scrape_actors, server)
        actors.append(actors_between(before, after, effort.writes / together[-1].rate))
        made = [path.read_bytes() for path in (data / "knowledge").glob(f"measured-{series}-*.md")]
        if len(made) != effort.writes:
            raise AssertionError(f"{len(made)} files were found of {effort.writes} writes")
        raw.append(write_durably(data / f"disk-{number}", made))
    return _Writes(
        Latencies(**middle_of(alone)),
        Latencies(**middle_of(together)),
        middle(raw, 1),
        middle([one.rate / files for one, files in zip(together, raw, strict=True)]),
        actors[-1],
    )


def _scrape_actors(server: Serving) -> Mapping[str, Histogram]:
    with urllib.request.urlopen(f"http://{server.host}:{server.port}/metrics") as response:
        return read_scrape(response.read().decode()).histograms[ACTORS]


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


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
