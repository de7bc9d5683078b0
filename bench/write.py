"""Acknowledged durable writes through `/mcp`: how many a second, and how long each waits.

`python -m bench.write --notes 10000`. Each answer means: the file is synced, an index has the note
and its event is journalled; full text follows, many notes at once, or when a search asks for it. `disk`
is the same files written alone by one thread with the same
syncs, which is what the machine gives.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import trio

from bench.client import Latencies, Request, drive
from bench.corpus import queries
from bench.report import middle, middle_of, print_report
from bench.server import Serving, data_directory, serving

TEXT_REPEATS = 40


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.write", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=480, help="writes per round")
    parser.add_argument("--clients", type=int, default=16)
    options = parser.parse_args()
    with data_directory(options.notes) as data, serving(data) as server:
        trio.run(_measure, server, data, options)


async def _measure(server: Serving, data: Path, options: argparse.Namespace) -> None:
    texts = queries(5, 2_000)
    disk: list[float] = []
    alone: list[Latencies] = []
    together: list[Latencies] = []
    await drive(server, 4, 40, writing(texts, "warm"))
    for number in range(options.rounds):
        disk.append(_synced_files(data, 100))
        alone.append(await drive(server, 1, max(1, options.calls // 8), writing(texts, f"a{number}")))
        together.append(await drive(server, options.clients, options.calls, writing(texts, f"t{number}")))
    print_report(
        "write",
        notes=options.notes,
        disk_files_per_s=middle(disk, 1),
        clients_1=middle_of(alone),
        **{f"clients_{options.clients}": middle_of(together)},
        rate_to_disk=middle([one.rate / raw for one, raw in zip(together, disk, strict=True)], 2),
        resident_mib=server.resident(),
    )


def writing(texts: list[str], series: str) -> Callable[[int], Request]:
    def request(number: int) -> Request:
        body = "\n\n".join(texts[(number * 7 + i) % len(texts)] for i in range(TEXT_REPEATS))
        return "lithos_write", {
            "title": f"Measured {series} {number}",
            "content": body,
            "agent": f"bench-{number % 16}",
            "tags": ["bench", series],
        }

    return request


def _synced_files(data: Path, files: int) -> float:
    """Files a second: temporary file, sync, rename, sync of the folder."""
    folder = data / "disk"
    folder.mkdir(exist_ok=True)
    began = time.perf_counter()
    for number in range(files):
        with (folder / "temporary").open("wb") as file:
            file.write(b"x" * 2_000)
            file.flush()
            os.fsync(file.fileno())
        (folder / "temporary").rename(folder / f"{number}.md")
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    return files / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
