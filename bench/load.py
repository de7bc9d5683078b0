"""A mixed load on a running server, in a process of its own: `python -m bench.load HOST PORT SECONDS`."""

from __future__ import annotations

import argparse
import json
import random
from contextlib import AsyncExitStack

import trio

from bench.client import RawClient, Request
from bench.corpus import queries
from bench.words import TOPICS

WRITERS = 4
READERS = 6


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("seconds", type=float)
    options = parser.parse_args()
    print(json.dumps({"calls": trio.run(_load, options.host, options.port, options.seconds)}))


async def _load(host: str, port: int, seconds: float) -> int:
    counts: list[int] = []
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(RawClient(host, port)) for _ in range(WRITERS + READERS)]
        with trio.move_on_after(seconds):
            async with trio.open_nursery() as nursery:
                for number, client in enumerate(clients):
                    work = _write_and_delete if number < WRITERS else _look_around
                    nursery.start_soon(work, client, number, counts)
    return len(counts)


async def _look_around(client: RawClient, number: int, counts: list[int]) -> None:
    rng = random.Random(number)
    texts = queries(number, 2_000)
    while True:
        await client.call(*_look(rng, texts))
        counts.append(1)


def _look(rng: random.Random, texts: list[str]) -> Request:
    text = rng.choice(texts)
    topic = rng.choice(tuple(TOPICS))
    calls: tuple[Request, ...] = (
        ("lithos_search", {"query": text}),
        ("lithos_search", {"query": text, "mode": "fulltext"}),
        ("lithos_search", {"query": text, "mode": "semantic"}),
        ("lithos_search", {"query": text, "limit": 50}),
        ("lithos_search", {"query": text, "tags": [topic]}),
        ("lithos_search", {"query": text, "path_prefix": f"{topic}/"}),
        ("lithos_cache_lookup", {"query": text}),
        ("lithos_list", {}),
        ("lithos_list", {"limit": 100_000}),
        ("lithos_list", {"content_query": text}),
        ("lithos_list", {"title_contains": topic}),
        ("lithos_tags", {}),
        ("lithos_stats", {}),
    )
    # Every tenth call is one of the heavy ones at the end.
    return calls[rng.randrange(8)] if rng.random() < 0.9 else calls[8 + rng.randrange(5)]


async def _write_and_delete(client: RawClient, number: int, counts: list[int]) -> None:
    texts = queries(100 + number, 2_000)
    written = 0
    while True:
        written += 1
        content = "\n\n".join(texts[(written * 7 + i) % len(texts)] for i in range(40))
        title = f"Loaded {number} {written} {counts[-1:]}{len(counts)}"
        answer = json.loads(
            await client.exchange(
                "lithos_write", {"title": title, "content": content, "agent": "bench", "tags": ["bench"]}
            )
        )
        note = answer["result"]["structuredContent"]
        await client.call("lithos_read", {"id": note["id"]})
        if written % 2:
            await client.call("lithos_delete", {"id": note["id"], "agent": "bench"})
        counts.append(1)


if __name__ == "__main__":
    main()
