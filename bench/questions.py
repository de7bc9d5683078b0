"""What remembered questions cost a retrieval: none, 10,000 and 100,000 of them, in one run.

`python -m bench.questions --notes 2000`. Each question is two queries of the corpus joined, cited for a note
and written straight into `stats.db`; the server runs in this process. Beside each retrieval stands a hybrid
search of the same query, and the time of the memory alone (vector, nearest passage, matrix).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import trio

from bench.corpus import queries
from bench.report import print_report
from bench.server import data_directory
from lithos.app import running_server
from lithos.config.catalogue import Config
from lithos.config.sections import ServerConfig, StorageConfig
from lithos.core.learning.memory import AskedQuestion
from lithos.core.learning.questions import QuestionFilter, Standing, digest_question
from lithos.services.retrieve.questions import name_embedder
from lithos.stores.indexes.chunk_rows import encode_rows
from lithos.stores.indexes.embedder import load_embedder
from lithos.stores.learning.stats import StatsStore

SIZES = (0, 10_000, 100_000)
WARM_UP = 50


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.questions", description=__doc__)
    parser.add_argument("--notes", type=int, default=2_000)
    parser.add_argument("--calls", type=int, default=200, help="calls per kind and size")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="remembered questions")
    options = parser.parse_args()
    texts = queries(3, 5_000)
    with data_directory(options.notes) as data:
        figures: dict[str, Any] = {}
        for size in sorted(options.sizes):
            note_ids = trio.run(_note_ids, data)
            _remember(data, size, note_ids, texts)
            figures[f"questions_{size}"] = trio.run(_measure, data, size, texts, options.calls)
    print_report("questions", notes=options.notes, **figures)


def _config(data: Path) -> Config:
    return Config(storage=StorageConfig(data_dir=data), server=ServerConfig(watch_files=False))


async def _note_ids(data: Path) -> list[str]:
    async with running_server(_config(data)) as server:
        await server.searchable()
        return [entry.note.id for entry in server.catalogue]


def _remember(data: Path, size: int, note_ids: list[str], texts: list[str]) -> None:
    """Fill the memory up to `size` questions."""
    store, random = StatsStore.open(data / ".lithos" / "stats.db", datetime.now(UTC)), Random(size)
    embedder = load_embedder("builtin")
    name = name_embedder(embedder.identity)
    try:
        while (have := store.reading.questions.count(QuestionFilter())) < size:
            asked = [
                f"{random.choice(texts)} {random.choice(texts)} {have + number}"
                for number in range(min(1_000, size - have))
            ]
            codes = encode_rows(embedder.encode(asked))
            with store.transaction():
                for text, row in zip(asked, codes, strict=True):
                    question = AskedQuestion(
                        text=text, digest=digest_question(text), codes=row.tobytes(), embedder=name
                    )
                    cited = Standing(random.choice(note_ids), True, 1.0, a=1.0)
                    store.writing.questions.add(question, cited, "n", datetime.now(UTC))
            store.writing.questions.touched.clear()
    finally:
        store.close()


async def _measure(data: Path, size: int, texts: list[str], calls: int) -> dict[str, Any]:
    async with running_server(_config(data)) as server:
        await server.searchable()
        began = time.perf_counter()
        await server.questions.embed()
        loaded = time.perf_counter() - began
        assert len(server.questions.memory.matrix) == size
        kinds: dict[str, Callable[[str], Awaitable[object]]] = {
            "search": lambda query: server.tools.call("lithos_search", {"query": query}),
            "retrieve": lambda query: server.tools.call("lithos_retrieve", {"query": query}),
            "memory": server.questions.memory.weigh,
        }
        for look in kinds.values():
            await _time(look, texts, WARM_UP)
        figures = {kind: await _time(look, texts, calls) for kind, look in kinds.items()}
        ratio = figures["retrieve"]["p50"] / figures["search"]["p50"]
        return {**figures, "retrieve_by_search": round(ratio, 2), "load_seconds": round(loaded, 2)}


async def _time(look: Callable[[str], Awaitable[object]], texts: list[str], calls: int) -> dict[str, float]:
    """Milliseconds of a call: median, 95th percentile, processor time."""
    taken, processor = [], time.process_time()
    for number in range(calls):
        began = time.perf_counter()
        await look(texts[number % len(texts)])
        taken.append(1e3 * (time.perf_counter() - began))
    processor = 1e3 * (time.process_time() - processor) / calls
    taken.sort()
    return {
        "p50": round(taken[calls // 2], 2),
        "p95": round(taken[calls * 95 // 100], 2),
        "processor": round(processor, 2),
    }


if __name__ == "__main__":
    main()
