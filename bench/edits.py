"""Acknowledged edits of one note through `/mcp`: 16 agents append to it, each text a durable version.

`python -m bench.edits`. `apart` is the same number of agents that append to a note each; `disk` is one file
replaced by one thread with the same syncs, which is what a version of a note costs the machine at least.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import trio

from bench.client import Latencies, RawClient, Request, drive
from bench.report import middle, middle_of, print_report
from bench.server import Serving, data_directory, serving

GOAL = 150.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.edits", description=__doc__)
    parser.add_argument("--notes", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=800, help="edits per round")
    parser.add_argument("--clients", type=int, default=16)
    options = parser.parse_args()
    with data_directory(options.notes) as data, serving(data) as server:
        trio.run(_measure, server, data, options)


async def _measure(server: Serving, data: Path, options: argparse.Namespace) -> None:
    disk: list[float] = []
    figures: dict[str, list[Latencies]] = {"alone": [], "body": [], "section": [], "apart": []}
    for number in range(options.rounds):
        notes = [await _create(server, f"Shared {number} {each}") for each in range(options.clients + 3)]
        disk.append(_replaced(data, 200))
        alone, body, section, *apart = notes
        few = max(1, options.calls // 8)
        figures["alone"].append(await drive(server, 1, few, appending([alone], None)))
        figures["body"].append(await drive(server, options.clients, options.calls, appending([body], None)))
        figures["section"].append(
            await drive(server, options.clients, options.calls, appending([section], "Log"))
        )
        figures["apart"].append(await drive(server, options.clients, options.calls, appending(apart, "Log")))
    rate = middle([each.rate for each in figures["section"]], 1)
    print_report(
        "edits",
        notes=options.notes,
        clients=options.clients,
        disk_replaced_per_s=middle(disk, 1),
        **{name: middle_of(some) for name, some in figures.items()},
        section_to_goal=round(rate / GOAL, 2),
        body_to_disk=middle([one.rate / raw for one, raw in zip(figures["body"], disk, strict=True)], 2),
        resident_mib=server.resident(),
    )


async def _create(server: Serving, title: str) -> str:
    async with RawClient(server.host, server.port) as client:
        content = "What this is about.\n\n## Log\n\nBegin.\n\n## Other\n\nKept."
        given = {"title": title, "content": content, "agent": "bench"}
        answer = json.loads(await client.exchange("lithos_write", given))
        note: str = answer["result"]["structuredContent"]["id"]
        return note


def appending(notes: Sequence[str], section: str | None) -> Callable[[int], Request]:
    def request(number: int) -> Request:
        return "lithos_note_edit", {
            "id": notes[number % len(notes)],
            "op": "append",
            "agent": f"bench-{number % 16}",
            "text": f"Agent {number % 16} has found out number {number}.",
            **({} if section is None else {"section": section}),
        }

    return request


def _replaced(data: Path, times: int) -> float:
    """Replacements a second of one file: temporary file, sync, rename, sync of the folder."""
    folder = data / "disk"
    folder.mkdir(exist_ok=True)
    began = time.perf_counter()
    for _ in range(times):
        with (folder / "temporary").open("wb") as file:
            file.write(b"x" * 20_000)
            file.flush()
            os.fsync(file.fileno())
        (folder / "temporary").rename(folder / "one.md")
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    return times / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
