"""Benchmark of read-only calls through `/mcp`.

The benchmark compares the time and processor time of the calls with those of a no-op.

Run `python -m bench.calls --notes 10000`. The no-op is the same as in `bench.search`. Each round alternates
all kinds of calls, so that a busy machine slows all of them equally. `to_noop` and `to_noop_processor` are
medians of the ratios within a round. `to_hybrid` compares the calls that rank notes. Half of the reads use
notes that were read before.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from bench.client import Latencies, RawClient, Request, drive
from bench.corpus import queries
from bench.report import median_ratio, middle_of, print_report
from bench.search import NOOP
from bench.server import Serving, data_directory, serving
from bench.words import TOPICS

WARM_UP = 60
#: Number of notes that are read repeatedly, and total number of known notes.
HOT, KNOWN = 200, 20_000
RANKING = ("hybrid", "retrieve", "retrieve_tag", "context")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.calls", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=200, help="calls per kind and round")
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="measure only these kinds, in addition to the no-op")
    parser.add_argument("--data", type=Path, help="an existing data directory instead of a new corpus")
    options = parser.parse_args()
    with data_directory(options.notes, given=options.data) as data, serving(data) as server:
        server.settle()
        trio.run(_measure, server, options)


async def _measure(server: Serving, options: argparse.Namespace) -> None:
    """Print the medians for each kind of call, and the medians of the ratios within a round."""
    kinds = kinds_of(queries(3, 5_000), await _note_ids(server))
    if options.only:
        kinds = {kind: request for kind, request in kinds.items() if kind in ("noop", *options.only)}
    asked = dict.fromkeys(kinds, 0)

    async def drive_on(kind: str, calls: int) -> Latencies:
        """Measure calls with arguments that earlier rounds have not used."""
        begin, request = asked[kind], kinds[kind]
        asked[kind] += calls
        return await drive(server, options.clients, calls, lambda number: request(begin + number))

    for kind in kinds:
        await drive_on(kind, WARM_UP)
    rounds: dict[str, list[Latencies]] = {kind: [] for kind in kinds}
    for _ in range(options.rounds):
        for kind in kinds:
            rounds[kind].append(await drive_on(kind, options.calls))
    ratios = {
        f"to_{base}{'_processor' * (figure == 'processor')}": {
            kind: median_ratio(rounds[kind], rounds[base], figure)
            for kind in rounds
            if kind != base and (base == "noop" or kind in RANKING)
        }
        for base in ("noop", "hybrid")
        if base in rounds
        for figure in ("p50", "processor")
    }
    medians = {kind: middle_of(of_kind) for kind, of_kind in rounds.items()}
    print_report("calls", notes=options.notes, clients=options.clients, **medians, **ratios)


def kinds_of(texts: list[str], note_ids: list[str]) -> dict[str, Callable[[int], Request]]:
    topics = list(TOPICS)
    hot, cold = note_ids[:HOT], note_ids[HOT:]

    def listing(**arguments: Any) -> Callable[[int], Request]:
        return lambda number: ("lithos_list", {"limit": 50, **arguments})

    def read(number: int) -> Request:
        if number % 2 and cold:
            return "lithos_read", {"id": cold[number // 2 % len(cold)]}
        return "lithos_read", {"id": hot[number // 2 % len(hot)]}

    def query(number: int) -> str:
        return texts[number % len(texts)]

    return {
        "noop": lambda number: NOOP,
        "read": read,
        "read_again": lambda number: ("lithos_read", {"id": hot[number % len(hot)]}),
        "list": listing(),
        "list_tag": lambda number: listing(tags=[topics[number % len(topics)]])(number),
        "list_folder": lambda number: listing(path_prefix=f"{topics[number % len(topics)]}/")(number),
        "list_since": listing(since="2026-01-01T00:00:00Z"),
        "list_title": lambda number: listing(title_contains=topics[number % len(topics)])(number),
        "list_text": lambda number: listing(content_query=topics[number % len(topics)])(number),
        "tags": lambda number: ("lithos_tags", {}),
        "related": lambda number: ("lithos_related", {"id": note_ids[number % len(note_ids)]}),
        "hybrid": lambda number: ("lithos_search", {"query": query(number)}),
        "retrieve": lambda number: ("lithos_retrieve", {"query": query(number)}),
        "retrieve_tag": lambda number: (
            "lithos_retrieve",
            {"query": query(number), "tags": [topics[number % len(topics)]]},
        ),
        "context": lambda number: ("lithos_context", {"query": query(number)}),
    }


async def _note_ids(server: Serving) -> list[str]:
    async with RawClient(server.host, server.port) as client:
        answer = json.loads(await client.exchange("lithos_list", {"limit": KNOWN}))
    return [item["id"] for item in answer["result"]["structuredContent"]["items"]]


if __name__ == "__main__":
    main()
