"""The accurate tier: the model alone, a vault embedded with and without clients, searches in both tiers.

`python -m bench.accurate --notes 10000 --clients 8`. The figures: chunks a second of processor time and
milliseconds of it a query, of the model alone; hybrid searches of one client and of many in the static tier
and in the accurate one; processor seconds until every note has its vectors, nobody searching; how long that
takes beside searching clients, and how much slower their p95 is than in an idle server; resident memory.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import quantiles
from typing import Any

import trio

from bench.client import RawClient, drive
from bench.corpus import queries
from bench.report import print_report
from bench.server import Serving, data_directory, serving
from lithos.core.text.chunk import chunk_text
from lithos.stores.indexes.transformer import load_transformer

#: Seconds between two looks at `/health`.
LOOK = 0.25
WARM_UP, CALLS = 100, 400
#: Notes whose chunks are embedded to measure the model alone.
NOTES_ALONE, QUERIES_ALONE = 60, 100


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.accurate", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--calls", type=int, default=CALLS)
    options = parser.parse_args()
    texts = queries(3, 5_000)
    with data_directory(options.notes) as data:
        alone = _measure_model(data / "knowledge", texts)
        with _tier(data, "static") as server:
            static = _measure_searches(server, options, texts)
        with _tier(data, "accurate") as server:
            filled = _measure_filling(server)
            accurate = _measure_searches(server, options, texts)
        shutil.rmtree(data / ".usearch" / "accurate")
        with _tier(data, "accurate") as server:
            beside = trio.run(_search_meanwhile, server, options.clients, texts)
    print_report(
        "accurate",
        notes=options.notes,
        **alone,
        **{f"static_{name}": value for name, value in static.items()},
        **{f"accurate_{name}": value for name, value in accurate.items()},
        to_static=round(accurate["hybrid_p50_ms"] / static["hybrid_p50_ms"], 2),
        **filled,
        **beside,
        p95_beside_to_idle=round(beside["beside_p95_ms"] / static["hybrid_many_p95_ms"], 2),
    )


def _measure_model(knowledge: Path, texts: list[str]) -> dict[str, float]:
    """The model in this process, one thread."""
    model = load_transformer()
    notes = [path.read_text() for path in sorted(knowledge.rglob("*.md"))[:NOTES_ALONE]]
    chunks = [chunk.embedded for note in notes for chunk in chunk_text("", note)]
    model.encode(chunks[:8])
    begun = time.process_time()
    model.encode(chunks)
    chunk_seconds = time.process_time() - begun
    begun = time.process_time()
    for text in texts[:QUERIES_ALONE]:
        model.encode_query(text)
    query_seconds = time.process_time() - begun
    return {
        "chunks_a_processor_s": round(len(chunks) / chunk_seconds, 1),
        "query_processor_ms": round(1000 * query_seconds / QUERIES_ALONE, 2),
    }


@contextmanager
def _tier(data: Path, tier: str) -> Iterator[Serving]:
    with serving(data, {"LITHOS_SEARCH__TIER": tier}) as server:
        yield server


def _measure_searches(server: Serving, options: argparse.Namespace, texts: list[str]) -> dict[str, float]:
    fresh = count()

    def ask(_: int) -> tuple[str, dict[str, str]]:
        return "lithos_search", {"query": texts[next(fresh) % len(texts)]}

    async def run() -> tuple[Any, Any]:
        await drive(server, 1, WARM_UP, ask)
        return await drive(server, 1, options.calls, ask), await drive(
            server, options.clients, options.calls, ask
        )

    one, many = trio.run(run)
    return {
        "hybrid_p50_ms": round(one.p50, 2),
        "hybrid_many_p95_ms": round(many.p95, 2),
        "resident_mib": server.resident(),
    }


def _measure_filling(server: Serving) -> dict[str, float]:
    """From the start of the process: its own seconds, static tier included, and those of the wall."""
    begun = time.perf_counter()
    _wait_accurate(server)
    return {
        "filling_s": round(server.searchable + time.perf_counter() - begun, 1),
        "filling_processor_s": round(server.processor_seconds(), 1),
        "filling_peak_mib": server.peak(),
        "chunks": _embedding(server)["total"],
    }


async def _search_meanwhile(server: Serving, clients: int, texts: list[str]) -> dict[str, float]:
    """Clients that search without a pause until the tier is accurate."""
    taken: list[float] = []
    fresh, begun = count(), time.perf_counter()

    async def search() -> None:
        async with RawClient(server.host, server.port) as client:
            while True:
                asked = time.perf_counter()
                await client.call("lithos_search", {"query": texts[next(fresh) % len(texts)]})
                taken.append(time.perf_counter() - asked)

    async with trio.open_nursery() as nursery:
        for _ in range(clients):
            nursery.start_soon(search)
        await trio.to_thread.run_sync(_wait_accurate, server)
        nursery.cancel_scope.cancel()
    return {
        "beside_s": round(time.perf_counter() - begun, 1),
        "beside_searches": len(taken),
        "beside_p95_ms": round(quantiles(taken, n=100)[94] * 1000, 2),
        "beside_peak_mib": server.peak(),
    }


def _wait_accurate(server: Serving) -> None:
    while (told := _embedding(server))["tier"] != "accurate" or told["done"] < told["total"]:
        time.sleep(LOOK)


def _embedding(server: Serving) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://{server.host}:{server.port}/health") as response:
        told: dict[str, Any] = json.load(response)["components"]["embedding_model"]
    if told["status"] == "degraded":
        raise SystemExit(f"There is no accurate tier to measure: {told['error']}")
    return told


if __name__ == "__main__":
    main()
