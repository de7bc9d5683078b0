"""Benchmark of searches relative to a no-op through `/mcp`, and of the memory after many searches.

Run `python -m bench.search --notes 10000`. The no-op is `lithos_agent_info` for an unknown agent, which reads
one dictionary and returns null. Rounds alternate the tools, so that a busy machine slows all of them equally.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from bench.client import Latencies, Request, drive
from bench.corpus import queries
from bench.report import median_ratio, middle_of, print_report
from bench.server import Serving, data_directory, serving

NOOP: Request = ("lithos_agent_info", {"id": "nobody"})
MODES = ("hybrid", "fulltext", "semantic")
WARM_UP = 200


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=400, help="calls per tool and round")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument(
        "--searches", type=int, default=10_000, help="number of searches before memory is read again"
    )
    parser.add_argument("--data", type=Path, help="an existing data directory instead of a new corpus")
    options = parser.parse_args()
    with data_directory(options.notes, given=options.data) as data, serving(data) as server:
        server.settle()
        trio.run(_measure, server, options)


async def _measure(server: Serving, options: argparse.Namespace) -> None:
    started = server.resident()
    texts = queries(3, 5_000)
    kinds = {"noop": lambda number: NOOP, **{mode: asking(texts, mode) for mode in MODES}}
    for request in kinds.values():
        await drive(server, 1, WARM_UP, request)
    figures: dict[str, Any] = {}
    for clients in (1, options.clients):
        rounds: dict[str, list[Latencies]] = {kind: [] for kind in kinds}
        for _ in range(options.rounds):
            for kind, request in kinds.items():
                rounds[kind].append(await drive(server, clients, options.calls, request))
        figures[f"clients_{clients}"] = {
            "to_noop": {
                name: median_ratio(rounds[mode], rounds["noop"], figure)
                for mode in MODES
                for name, figure in ((mode, "p50"), (f"{mode}_processor", "processor"))
            },
            **{kind: middle_of(of_kind) for kind, of_kind in rounds.items()},
        }
    before = server.resident()
    await drive(server, options.clients, options.searches, kinds["hybrid"])
    memory = {"started": started, "before": before, "after": server.resident(), "peak": server.peak()}
    print_report("search", memory_mib=memory, **figures)


def asking(texts: list[str], mode: str) -> Callable[[int], Request]:
    """Return a function that returns searches for the texts in turn."""
    return lambda number: ("lithos_search", {"query": texts[number % len(texts)], "mode": mode})


if __name__ == "__main__":
    main()
