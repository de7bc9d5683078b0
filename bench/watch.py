"""Benchmark of edits by other programs. It measures the time until a search finds an edit.

Run `python -m bench.watch --notes 1000`. `edit` changes one file at a time. It is the time from the write to
the first search that finds the new word in the file. `burst` is the time until all of many new files are
found, and `behind` is the time since the last file was written. `write_p95` is for writes by a tool during
the burst. `idle_cpu` is the share of a core that an idle, watching server needs.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import trio

from bench.client import RawClient
from bench.report import print_report
from bench.server import Serving, data_directory, serving

PAUSE = 0.01
PATIENCE = 120.0
IDLE = 5.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.watch", description=__doc__)
    parser.add_argument("--notes", type=int, default=1_000)
    parser.add_argument("--edits", type=int, default=30)
    parser.add_argument("--burst", type=int, default=1_000)
    parser.add_argument("--mode", choices=("auto", "native", "poll"), default="auto")
    options = parser.parse_args()
    environment = {"LITHOS_INDEX__WATCH_MODE": options.mode}
    with data_directory(options.notes) as data, serving(data, environment) as server:
        trio.run(_measure, server, data / "knowledge", options)


async def _measure(server: Serving, folder: Path, options: argparse.Namespace) -> None:
    async with RawClient(server.host, server.port) as client:
        edits = sorted([await _edit(client, folder, number) for number in range(options.edits)])
        before = server.processor_seconds()
        await trio.sleep(IDLE)
        idle = (server.processor_seconds() - before) / IDLE
        burst, behind, writes = await _burst(server, client, folder, options.burst)
    print_report(
        "watch",
        notes=options.notes,
        mode=options.mode,
        edit_p50=round(edits[len(edits) // 2], 3),
        edit_p95=round(edits[int(len(edits) * 0.95)], 3),
        burst_files=options.burst,
        burst=round(burst, 3),
        behind=round(behind, 3),
        writes=len(writes),
        write_p95=round(writes[int(len(writes) * 0.95)], 3),
        idle_cpu=round(idle, 4),
        resident_mib=server.resident(),
    )


async def _edit(client: RawClient, folder: Path, number: int) -> float:
    """Return the seconds from a change of one of a few files until a search finds the change."""
    word = f"quagga{number}x"
    file = folder / f"edited-{number % 5}.md"
    began = time.perf_counter()
    file.write_text(f"# Edited {number % 5}\n\nThis is about {word}.\n")
    await _until_found(client, word, 1)
    return time.perf_counter() - began


async def _burst(
    server: Serving, client: RawClient, folder: Path, number: int
) -> tuple[float, float, list[float]]:
    """Return the seconds until all new files are found.

    The seconds are counted from the first and from the last file. Also return the write times.
    """
    texts = [
        f"# Arrived {n}\n\nokapis number {n}, see [[Arrived {n // 2}]].\n\n" + "word " * 80
        for n in range(number)
    ]
    writes: list[float] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_keep_writing, server, writes)
        began = time.perf_counter()
        await trio.to_thread.run_sync(_write_all, folder, texts)
        written = time.perf_counter()
        await _until_found(client, "okapis", number)
        ended = time.perf_counter()
        nursery.cancel_scope.cancel()
    return ended - began, ended - written, sorted(writes)


def _write_all(folder: Path, texts: list[str]) -> None:
    for number, text in enumerate(texts):
        (folder / f"arrived-{number}.md").write_text(text)


async def _keep_writing(server: Serving, writes: list[float]) -> None:
    async with RawClient(server.host, server.port) as client:
        number = 0
        while True:
            number += 1
            began = time.perf_counter()
            arguments = {"title": f"Meanwhile {number}", "content": "a note", "agent": "bench"}
            await client.call("lithos_write", arguments)
            writes.append(time.perf_counter() - began)
            await trio.sleep(PAUSE)


async def _until_found(client: RawClient, word: str, number: int) -> None:
    arguments: dict[str, Any] = {"content_query": word, "limit": 1}
    with trio.fail_after(PATIENCE):
        while True:
            answer = json.loads(await client.exchange("lithos_list", arguments))
            if answer["result"]["structuredContent"]["total"] >= number:
                return
            await trio.sleep(PAUSE)


if __name__ == "__main__":
    main()
