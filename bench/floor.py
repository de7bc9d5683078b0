"""The floor under a search: the sum of its parts, each measured alone, beside what a search costs.

`python -m bench.floor DATA ...`, data directories that a server has indexed (`bench.scale DIR` makes them);
one JSON line each. `parts_us` are microseconds of one warm call without anybody beside it, the least of
several, the median over queries: the embedding of the query, the scan of the vectors, tantivy, the lead
coverage of sixty notes, reading and cutting ten snippets (`snippets_first_us` when none of their texts is
kept), JSON. `floor_ms` adds to a no-op what a mode cannot do without; `processor_ms` is the processor time of
a call through `/mcp` in the same minute, rounds alternating.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
import trio
from pydantic_core import to_json

from bench.client import drive
from bench.corpus import queries
from bench.report import middle, print_report
from bench.search import MODES, NOOP, asking
from bench.server import Serving, serving
from lithos.app import Server, running_server
from lithos.config.load import load_config
from lithos.core.text.query import plain_words
from lithos.core.text.snippet import Terms
from lithos.services.search.hybrid import LEG_NOTES
from lithos.stores.indexes.fulltext_schema import Filters

QUERIES, TIMES = 60, 7
ROUNDS, CALLS = 5, 200
#: Notes whose lead coverage a hybrid search needs, and rows of an answer.
LED, ROWS = 60, 10
NEEDED: Final = {
    "fulltext": ("tantivy", "snippets", "json"),
    "semantic": ("embedding", "scan", "snippets", "json"),
    "hybrid": ("embedding", "scan", "tantivy", "lead", "snippets", "json"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.floor", description=__doc__)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    for data in (options := parser.parse_args()).data:
        notes, parts, first = trio.run(_measure_parts, data)
        with serving(data) as server:
            processor = trio.run(_measure_calls, server, options.rounds)
        floor = {
            mode: round(processor["noop"] + sum(parts[part] for part in needed) / 1000, 2)
            for mode, needed in NEEDED.items()
        }
        print_report(
            "floor",
            notes=notes,
            parts_us=parts,
            snippets_first_us=first,
            floor_ms=floor,
            processor_ms=processor,
            to_floor={mode: round(processor[mode] / floor[mode], 2) for mode in floor},
        )


async def _measure_parts(data: Path) -> tuple[int, dict[str, float], float]:
    """The notes, microseconds of each part, and those of snippets of notes that nobody has read."""
    config = load_config(data_dir=data, environment={}).config
    quiet = attrs.evolve(
        config,
        server=attrs.evolve(config.server, watch_files=False),
        search=attrs.evolve(config.search, tier="static"),
    )
    parts: dict[str, list[float]] = {}
    first: list[float] = []
    async with running_server(quiet) as server:
        await server.searchable()
        for query in queries(3, QUERIES):
            work, cut = _prepare(server, query)
            first.append(await _time(cut, 1))
            answer = await server.tools.call("lithos_search", {"query": query})
            work["json"] = partial(_awaited, partial(to_json, answer))
            for part, call in {**work, "snippets": cut}.items():
                parts.setdefault(part, []).append(await _time(call, TIMES))
        notes = len(server.catalogue)
    return notes, {part: middle(times, 0) for part, times in parts.items()}, middle(first, 0)


def _prepare(
    server: Server, query: str
) -> tuple[dict[str, Callable[[], Awaitable[object]]], Callable[[], Awaitable[object]]]:
    """The parts of a search for a query, ready to be called, and the one that cuts its snippets."""
    search, notes = server.search, server.semantic.port.target
    fulltext, node = search.hybrid._fulltext, plain_words(query)
    assert notes is not None
    assert node is not None
    vector = notes.embedder.encode([query])[0]
    idf = fulltext.idf(fulltext.content_stems(query))
    serials = [serial for serial, _ in fulltext.search(node, LEG_NOTES, Filters())]
    found = (server.catalogue.at_serial(serial) for serial in serials[:ROWS])
    entries = [entry for entry in found if entry is not None]
    work: dict[str, Callable[[], object]] = {
        "embedding": lambda: notes.embedder.encode([query]),
        "scan": lambda: notes.vectors.search(vector, LEG_NOTES, search.threshold),
        "tantivy": lambda: fulltext.search(node, LEG_NOTES, Filters()),
        "lead": lambda: fulltext.coverage(idf, serials[:LED]),
    }
    cut = partial(search._snippets.cut, entries, Terms.of(query, idf), {})
    return {part: partial(_awaited, call) for part, call in work.items()}, cut


async def _awaited(call: Callable[[], object]) -> object:
    return call()


async def _time(call: Callable[[], Awaitable[object]], times: int) -> float:
    """Microseconds, the least of so many calls."""
    least = float("inf")
    for _ in range(times):
        began = time.perf_counter()
        await call()
        least = min(least, time.perf_counter() - began)
    return least * 1_000_000


async def _measure_calls(server: Serving, rounds: int) -> dict[str, float]:
    """The processor time of a call of each mode and of a no-op, in milliseconds."""
    texts = queries(3, CALLS)
    kinds: dict[str, Callable[[int], Any]] = {"noop": lambda number: NOOP}
    kinds |= {mode: asking(texts, mode) for mode in MODES}
    for request in kinds.values():
        await drive(server, 1, CALLS, request)
    measured: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, request in kinds.items():
            measured[kind].append((await drive(server, 1, CALLS, request)).processor)
    return {kind: middle(times, 2) for kind, times in measured.items()}


if __name__ == "__main__":
    main()
