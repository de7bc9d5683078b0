"""Retrieval that learns beside a hybrid search, and related notes of the deepest kind, through `/mcp`.

`python -m bench.retrieve --notes 10000`. The corpus has four links per note, and one note in five is from
one and the same web site. Every retrieval leaves a receipt on disk before it answers and teaches
coactivation, so the later rounds find more than the first.
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
from bench.report import middle_of, print_report
from bench.server import Serving, data_directory, serving
from bench.words import TOPICS

WARM_UP = 100


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.retrieve", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=300, help="calls per kind and round")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--data", type=Path, help="an existing data directory instead of a new corpus")
    options = parser.parse_args()
    with data_directory(options.notes, given=options.data) as data:
        _run(options, data)


def _run(options: argparse.Namespace, data: Path) -> None:
    with serving(data) as server:
        trio.run(_measure, server, options)


async def _measure(server: Serving, options: argparse.Namespace) -> None:
    kinds = _kinds(queries(3, 5_000), await _note_ids(server))
    for request in kinds.values():
        await drive(server, 1, WARM_UP, request)
    figures: dict[str, Any] = {}
    for clients in (1, options.clients):
        rounds: dict[str, list[Latencies]] = {kind: [] for kind in kinds}
        for _ in range(options.rounds):
            for kind, request in kinds.items():
                rounds[kind].append(await drive(server, clients, options.calls, request))
        figures[f"clients_{clients}"] = {kind: middle_of(of_kind) for kind, of_kind in rounds.items()}
    print_report("retrieve", notes=options.notes, memory_mib=server.resident(), **figures)


def _kinds(texts: list[str], note_ids: list[str]) -> dict[str, Callable[[int], Request]]:
    topics = list(TOPICS)

    def retrieving(more: Callable[[int], dict[str, Any]]) -> Callable[[int], Request]:
        return lambda number: ("lithos_retrieve", {"query": texts[number % len(texts)], **more(number)})

    return {
        "search": lambda number: ("lithos_search", {"query": texts[number % len(texts)]}),
        "retrieve": retrieving(lambda number: {}),
        "retrieve_task": retrieving(lambda number: {"task_id": f"t{number % 9}", "surface_conflicts": True}),
        "retrieve_tag": retrieving(lambda number: {"tags": [topics[number % len(topics)]]}),
        "retrieve_folder": retrieving(lambda number: {"path_prefix": f"{topics[number % len(topics)]}/"}),
        "related_3": lambda number: ("lithos_related", {"id": note_ids[number % len(note_ids)], "depth": 3}),
    }


async def _note_ids(server: Serving) -> list[str]:
    async with RawClient(server.host, server.port) as client:
        answer = json.loads(await client.exchange("lithos_list", {"limit": 1_000}))
    return [item["id"] for item in answer["result"]["structuredContent"]["items"]]


if __name__ == "__main__":
    main()
