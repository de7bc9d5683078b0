"""The console at work: `python -m bench.console --notes 10000`.

Each page is asked for by one client with a session, `--rounds` times: median and 95th percentile of the
answer in milliseconds, and its size in kilobytes. Then notes are written by one client without and with
`--feeds` open consoles that follow the events and ask for their rows as a page does, in alternating
rounds: the ratio of writes a second.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
import trio

from bench.client import RawClient
from bench.corpus import queries
from bench.report import print_report
from bench.server import data_directory, serving

_SEQ = re.compile(r'data-seq="(\d+)"')
#: Seconds of one round of writes.
ROUND = 4.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--feeds", type=int, default=20)
    options = parser.parse_args()
    with data_directory(options.notes) as data, serving(data) as server:
        trio.run(
            _measure, f"http://{server.host}:{server.port}", options.notes, options.rounds, options.feeds
        )


async def _measure(url: str, notes: int, rounds: int, feeds: int) -> None:
    async with httpx2.AsyncClient(base_url=url, timeout=60) as client:
        for name, addresses in (await _pages(url, client)).items():
            times, size = [], 0
            for number in range(rounds):
                began = time.perf_counter()
                answer = await client.get(addresses[number % len(addresses)])
                times.append(1000 * (time.perf_counter() - began))
                assert answer.status_code == 200, (name, answer.status_code, answer.text[:500])
                size = max(size, len(answer.content))
            print_report(
                "console",
                page=name,
                notes=notes,
                p50_ms=round(median(times), 1),
                p95_ms=round(sorted(times)[int(0.95 * (len(times) - 1))], 1),
                largest_kb=round(size / 1000, 1),
            )
    await _feeds(url, feeds)


async def _pages(url: str, client: httpx2.AsyncClient) -> dict[str, Sequence[str]]:
    """The addresses of each kind of page, some for each."""
    place = urlsplit(url)
    async with RawClient(place.hostname or "", place.port or 0) as tools:
        listed = await _ask(tools, "lithos_list", {"limit": 40})
        ids = [row["id"] for row in listed["items"]]
        task = await _ask(tools, "lithos_task_create", {"title": "Measured", "agent": "bench"})
        await _ask(tools, "lithos_note_update", {"id": ids[0], "agent": "bench", "tags": ["bench"]})
        texts = queries(7, 40)
        found = await _ask(tools, "lithos_retrieve", {"query": texts[0], "agent_id": "bench"})
    await client.get("/console/")
    searches = [f"/console/search?q={quote(text)}" for text in texts]
    return {
        "overview": ["/console/"],
        "search": searches,
        "search, a keystroke": [f"{address}&partial=1" for address in searches],
        "search, two modes": [f"{address}&against=fulltext" for address in searches],
        "note": [f"/console/notes/{each}" for each in ids],
        "browse": ["/console/notes", "/console/notes?offset=5000"],
        "graph of a note": [f"/console/graph?note={each}&depth=3" for each in ids],
        "graph of a search": [f"/console/graph?q={quote(text)}" for text in texts],
        "tasks": ["/console/tasks"],
        "task": [f"/console/tasks/{task['task_id']}"],
        "agents": ["/console/agents"],
        "agent": ["/console/agents/bench"],
        "receipt": [f"/console/receipts/{found['receipt_id']}"],
        "system": ["/console/system"],
    }


async def _ask(client: RawClient, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    answer = json.loads(await client.exchange(tool, arguments))
    return dict(answer["result"]["structuredContent"])


async def _feeds(url: str, feeds: int) -> None:
    ratios, alone, beside = [], [], []
    for _ in range(4):
        alone.append(await _write(url))
        async with trio.open_nursery() as nursery:
            for _ in range(feeds):
                await nursery.start(partial(_follow, url))
            beside.append(await _write(url))
            nursery.cancel_scope.cancel()
        ratios.append(beside[-1] / alone[-1])
    print_report(
        "console feeds",
        feeds=feeds,
        writes_per_s_alone=round(median(alone)),
        writes_per_s_beside=round(median(beside)),
        ratio=round(median(ratios), 3),
    )


async def _write(url: str) -> float:
    place, written = urlsplit(url), 0
    async with RawClient(place.hostname or "", place.port or 0) as client:
        until = time.perf_counter() + ROUND
        while time.perf_counter() < until:
            written += 1
            title = f"Console {time.time_ns()}"
            note = {"title": title, "content": "Some words.", "agent": "bench"}
            await client.call("lithos_write", note)
    return written / ROUND


async def _follow(url: str, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """An open console: the event stream, and its rows as HTML, the later the more came, as the page does."""
    async with httpx2.AsyncClient(base_url=url, timeout=None) as client:
        await client.get("/console/")
        async with client.stream("GET", "/console/events") as stream:
            task_status.started()
            due, after = 0.0, 0
            async for line in stream.aiter_lines():
                if line.startswith("id: ") and time.perf_counter() >= due:
                    after = after or int(line.removeprefix("id: ")) - 1
                    rows = await client.get(f"/console/feed?after={after}&partial=1")
                    fresh = [int(seq) for seq in _SEQ.findall(rows.text)]
                    after = max([after, *fresh])
                    due = time.perf_counter() + min(max(0.1 * len(fresh), 0.15), 5.0)


if __name__ == "__main__":
    main()
