"""Benchmark of acknowledged durable writes through `/mcp`: writes per second, and the latency of each write.

Run `python -m bench.write --notes 10000`. With `--beside-searches`, it instead measures how two writers and
fourteen searchers slow each other (`--notes 1000` is the row of the targets), and how fast the searchers are
alone. An acknowledged write is synced to its file, contained in an index, and journalled as an event. Full
text follows in batches, or when a search needs it. `disk` writes the same files with the same syncs in one
thread, which shows the limit of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import trio

from bench.client import Latencies, RawClient, Request, drive, summarise
from bench.corpus import queries
from bench.report import median_ratio, middle, middle_of, print_report
from bench.search import NOOP
from bench.server import Serving, data_directory, serving

TEXT_REPEATS = 40
#: Number of notes that are updated repeatedly.
UPDATED = 40
#: Number of searching clients under mixed load.
SEARCHERS = 14
WRITERS = 2


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.write", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=480, help="writes per round")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument(
        "--beside-searches", action="store_true", help="measure writers and searchers together"
    )
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="seconds per round of writers and searchers together"
    )
    parser.add_argument("--data", type=Path, help="an existing data directory instead of a new corpus")
    options = parser.parse_args()
    with data_directory(options.notes, given=options.data) as data, serving(data) as server:
        server.settle()
        trio.run(_measure_both if options.beside_searches else _measure, server, data, options)


async def _measure(server: Serving, data: Path, options: argparse.Namespace) -> None:
    texts, disk = queries(5, 2_000), list[float]()
    run = f"{time.time_ns():x}"  # titles must be unique, because an earlier run may have used the directory
    few, many, clients = max(1, options.calls // 8), options.calls, options.clients
    await drive(server, 4, 40, writing(texts, f"{run} warm"))
    known = await written_ids(server, UPDATED)
    rounds: dict[str, list[Latencies]] = defaultdict(list)
    for n in range(options.rounds):
        disk.append(_synced_files(data, 100))
        for name, at_once, calls, request in (
            ("noop", 1, 5 * few, lambda _: NOOP),
            ("clients_1", 1, few, writing(texts, f"{run} a{n}")),
            ("update", 1, few, updating(texts, known, f"{run} {n}")),
            (f"clients_{clients}", clients, many, writing(texts, f"{run} t{n}")),
            (f"updates_{clients}", clients, many, updating(texts, known, f"{run} u{n}")),
        ):
            rounds[name].append(await drive(server, at_once, calls, request))
    together = rounds[f"clients_{clients}"]
    print_report(
        "write",
        notes=options.notes,
        disk_files_per_s=middle(disk, 1),
        **{name: middle_of(of_name) for name, of_name in rounds.items()},
        to_noop=median_ratio(rounds["clients_1"], rounds["noop"]),
        update_to_noop=median_ratio(rounds["update"], rounds["noop"]),
        rate_to_disk=middle([one.rate / raw for one, raw in zip(together, disk, strict=True)], 2),
        resident_mib=server.resident(),
    )


async def _measure_both(server: Serving, data: Path, options: argparse.Namespace) -> None:
    """Run rounds of `seconds` seconds. They alternate between searchers alone, and searchers with writers."""
    texts = queries(5, 2_000)
    run = f"{time.time_ns():x}"
    await drive(server, 4, 40, writing(texts, f"{run} warm"))
    rounds: dict[str, list[Latencies]] = defaultdict(list)
    for series in (f"{run} m{number}" for number in range(options.rounds)):
        rounds["searches_alone"].append((await _mix(server, options.seconds, series, texts, 0))["search"])
        mix = await _mix(server, options.seconds, series, texts, WRITERS)
        rounds["searches"].append(mix["search"])
        rounds["writes"] += [mix["write"]] if "write" in mix else []
    medians = {name: middle_of(of_name) for name, of_name in rounds.items() if of_name}
    print_report("write_beside_searches", notes=options.notes, **medians, resident_mib=server.resident())


async def _mix(
    server: Serving, seconds: float, series: str, texts: list[str], writers: int
) -> dict[str, Latencies]:
    """Run searchers and writers.

    Each searcher or writer sends its next call after an answer. The processor time covers searchers and
    writers.
    """
    writes = writing(texts, series)
    waited: dict[str, list[float]] = {"search": [], "write": []}
    numbers = count()

    def search(number: int) -> Request:
        return "lithos_search", {"query": texts[number * 131 % len(texts)]}

    async def ask(kind: str, request: Callable[[int], Request]) -> None:
        async with RawClient(server.host, server.port) as client:
            while True:
                tool, arguments = request(next(numbers))
                began = time.perf_counter()
                await client.call(tool, arguments)
                waited[kind].append(time.perf_counter() - began)

    began, processor = time.perf_counter(), server.processor_seconds()
    with trio.move_on_after(seconds):
        async with trio.open_nursery() as nursery:
            for _ in range(SEARCHERS):
                nursery.start_soon(ask, "search", search)
            for _ in range(writers):
                nursery.start_soon(ask, "write", writes)
    elapsed, used = time.perf_counter() - began, server.processor_seconds() - processor
    assert waited["search"], "no search was answered"
    return {kind: summarise(each, elapsed, used) for kind, each in waited.items() if each}


async def written_ids(server: Serving, most: int) -> list[str]:
    """Return the ids of notes that this benchmark wrote and may overwrite."""
    async with RawClient(server.host, server.port) as client:
        answer = json.loads(await client.exchange("lithos_list", {"tags": ["bench"], "limit": most}))
    ids = [item["id"] for item in answer["result"]["structuredContent"]["items"]]
    assert ids, "no note of this benchmark was found"
    return ids


def updating(texts: list[str], ids: Sequence[str], series: str) -> Callable[[int], Request]:
    """Return a function that makes updates.

    An update gives an existing note another body, and a title made from its id.
    """
    write = writing(texts, series)

    def request(number: int) -> Request:
        tool, arguments = write(number)
        note = ids[number % len(ids)]
        return tool, {**arguments, "id": note, "title": f"Updated {note}"}

    return request


def writing(texts: list[str], series: str) -> Callable[[int], Request]:
    def request(number: int) -> Request:
        body = "\n\n".join(texts[(number * 7 + i) % len(texts)] for i in range(TEXT_REPEATS))
        return "lithos_write", {
            "title": f"Measured {series} {number}",
            "content": body,
            "agent": f"bench-{number % 16}",
            "tags": ["bench", series],
        }

    return request


def _synced_files(data: Path, files: int) -> float:
    """Return the number of files per second for: temporary file, sync, rename, and sync of the folder."""
    folder = data / "disk"
    folder.mkdir(exist_ok=True)
    began = time.perf_counter()
    for number in range(files):
        with (folder / "temporary").open("wb") as file:
            file.write(b"x" * 2_000)
            file.flush()
            os.fsync(file.fileno())
        (folder / "temporary").rename(folder / f"{number}.md")
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    return files / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
