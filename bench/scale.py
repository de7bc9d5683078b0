"""One server on a data directory that is kept: starts, memory and the latency of each kind of call.

`python -m bench.scale DIR --notes 300000` writes a corpus of so many notes into DIR/knowledge if there is
none, starts the server a first time if it never has, waits until it does nothing more (history, lists),
and stops it. Then it starts the server again, as often as `--rounds`, and calls it. Another run on the same
DIR begins with the second start. DIR is served in place, not copied; the notes that are written for the
measurement are deleted again. A start is to the first answer of a full-text search (`first_answer_s`), to
listening and to searchable by meaning.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import asdict

import bench.server
from bench.calls import kinds_of
from bench.client import Latencies, RawClient, Request, drive
from bench.corpus import generate, queries
from bench.report import middle_of, print_report
from bench.server import Serving, serving
from bench.starts import first_answer
from bench.write import writing

#: Seconds for a first index of a million notes on a busy machine.
PATIENCE = 4 * 3600.0
#: A server is idle once it uses less than this share of a processor for so many seconds.
IDLE_SHARE, IDLE_SECONDS = 0.05, 10.0
#: Notes that are read and asked about.
KNOWN = 5_000
WARM_UP = 30


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("data", type=Path, help="the data directory, kept")
    parser.add_argument("--notes", type=int, default=300_000, help="of a new corpus")
    parser.add_argument("--rounds", type=int, default=3, help="second starts, and rounds of calls")
    parser.add_argument("--calls", type=int, default=100, help="calls per kind and round")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="these kinds of calls only")
    parser.add_argument("--no-calls", action="store_true", help="starts and memory alone")
    options = parser.parse_args()
    bench.server.PATIENCE = PATIENCE
    bench.server.STOP_PATIENCE = 300.0
    knowledge = options.data / "knowledge"
    if not knowledge.exists():
        _say(f"writing {options.notes} notes")
        generate(knowledge, options.notes)
        os.sync()
    if not (options.data / ".lithos" / "manifest.db").exists():
        first_start(options.data)
    second_start(options)


def first_start(data: Path) -> None:
    """Index everything, and wait for what the server does afterwards."""
    _say("first start")
    began = time.perf_counter()
    with serving(data) as server, _memory_watched(server) as seen:
        figures = {"listening_s": server.listening, "searchable_s": server.searchable}
        peak, processor = server.peak(), server.processor_seconds()
        wait_idle(server)
        print_report(
            "scale_first",
            **figures,
            processor_s=round(processor, 1),
            peak_mib=peak,
            idle_s=round(time.perf_counter() - began, 1),
            idle_processor_s=round(server.processor_seconds(), 1),
            idle_resident_mib=server.resident(),
            idle_anonymous_mib=server.anonymous(),
            idle_peak_mib=server.peak(),
            seen=seen,
        )


@contextmanager
def _memory_watched(server: Serving) -> Iterator[dict[str, float]]:
    """What was resident at the begin and the end of the block."""
    seen = {"searchable_resident_mib": server.resident(), "searchable_anonymous_mib": server.anonymous()}
    yield seen


def second_start(options: argparse.Namespace) -> None:
    """Starts on what was indexed, then the calls."""
    answers = [round(first_answer(options.data), 3) for _ in range(options.rounds)]
    _say(f"first answers after {answers}")
    with serving(options.data) as server:
        starts = {"listening_s": server.listening, "searchable_s": server.searchable}
        start_processor, start_peak = server.processor_seconds(), server.peak()
        wait_idle(server)
        memory = {"resident_mib": server.resident(), "anonymous_mib": server.anonymous()}
        _say(f"{starts}, {memory}")
        calls = {} if options.no_calls else trio.run(measure_calls, server, options)
        print_report(
            "scale",
            first_answer_s=answers,
            **starts,
            start_processor_s=round(start_processor, 1),
            start_peak_mib=start_peak,
            idle_processor_s=round(server.processor_seconds(), 1),
            **memory,
            calls={kind: asdict(of_kind) for kind, of_kind in calls.items()},
            after_calls_resident_mib=server.resident(),
            after_calls_anonymous_mib=server.anonymous(),
            peak_mib=server.peak(),
        )


def wait_idle(server: Serving) -> None:
    """Wait until the server does next to nothing."""
    before, quiet = server.processor_seconds(), 0.0
    while quiet < IDLE_SECONDS:
        time.sleep(2.0)
        now = server.processor_seconds()
        quiet = quiet + 2.0 if now - before < 2.0 * IDLE_SHARE else 0.0
        before = now


async def measure_calls(server: Serving, options: argparse.Namespace) -> dict[str, Latencies]:
    """Medians over rounds that alternate all kinds."""
    texts = queries(3, 5_000)
    kinds: dict[str, Callable[[int], Request]] = dict(kinds_of(texts, await _note_ids(server)))
    for mode in ("fulltext", "semantic", "graph"):
        kinds[mode] = _searching(texts, mode)
    kinds["write"] = writing(texts, f"scale-{time.time_ns()}")
    if options.only:
        kinds = {kind: kinds[kind] for kind in ("noop", *options.only)}
    asked = dict.fromkeys(kinds, 0)
    rounds: dict[str, list[Latencies]] = {kind: [] for kind in kinds}

    async def drive_on(kind: str, calls: int) -> Latencies:
        """Each round asks what no round before it has asked."""
        begin, request = asked[kind], kinds[kind]
        asked[kind] += calls
        return await drive(server, options.clients, calls, lambda number: request(begin + number))

    for kind in kinds:
        await drive_on(kind, WARM_UP)
    for _ in range(options.rounds):
        for kind in kinds:
            rounds[kind].append(await drive_on(kind, options.calls))
            _say(f"{kind}: {rounds[kind][-1]}")
    if "write" in kinds:
        await _delete_written(server)
    return {kind: Latencies(**middle_of(of_kind)) for kind, of_kind in rounds.items()}


def _searching(texts: list[str], mode: str) -> Callable[[int], Request]:
    return lambda number: ("lithos_search", {"query": texts[number % len(texts)], "mode": mode})


async def _note_ids(server: Serving) -> list[str]:
    return [item["id"] for item in await _items(server, limit=KNOWN)]


async def _delete_written(server: Serving) -> None:
    items = await _items(server, limit=10_000, tags=["bench"])
    async with RawClient(server.host, server.port) as client:
        for item in items:
            await client.call("lithos_delete", {"id": item["id"], "agent": "bench"})


async def _items(server: Serving, **arguments: Any) -> list[dict[str, Any]]:
    async with RawClient(server.host, server.port) as client:
        answer = json.loads(await client.exchange("lithos_list", arguments))
    items: list[dict[str, Any]] = answer["result"]["structuredContent"]["items"]
    return items


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
