"""What keeping every version costs: acknowledged writes with and without history, the file, a listing.

`python -m bench.history`. Two servers, one with `history.enabled` off, are asked in turn (with, without,
without, with, …) by 1 and by 16 clients, for new notes and for updates of notes that are there; a ratio
compares the two halves of one round. The size and the listing are measured on the store alone.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import trio

from bench.client import RawClient, Request, drive
from bench.corpus import queries
from bench.report import middle, print_report
from bench.server import Serving, data_directory, serving
from bench.write import TEXT_REPEATS, writing
from lithos.core.history.versions import UPDATED
from lithos.stores.history.store import HISTORY, HistoryStore, NewVersion

SERIES = ("create_1", "create_16", "update_1", "update_16")
#: Notes that are updated.
NOTES = 64
NOTE = "00000000-0000-4000-8000-000000000001"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.history", description=__doc__)
    parser.add_argument("--notes", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--calls", type=int, default=320, help="writes of 16 clients in each half of a round")
    parser.add_argument("--updates", type=int, default=50_000, help="updates of one note of 2 kB")
    parser.add_argument("--skip-writes", action="store_true", help="measure the store alone")
    options = parser.parse_args()
    figures = _measure_store(options.updates)
    if not options.skip_writes:
        figures |= _measure_writes(options)
    print_report("history", notes=options.notes, **figures)


def _measure_writes(options: argparse.Namespace) -> dict[str, object]:
    with data_directory(options.notes) as one, data_directory(options.notes) as other:
        off = {"LITHOS_HISTORY__ENABLED": "false"}
        with serving(one) as kept, serving(other, off) as plain:
            return trio.run(_alternate, kept, plain, options)


async def _alternate(kept: Serving, plain: Serving, options: argparse.Namespace) -> dict[str, object]:
    texts = queries(5, 2_000)
    notes = {id(server): await _make_notes(server, texts) for server in (kept, plain)}
    rates: dict[str, list[tuple[float, float]]] = {series: [] for series in SERIES}
    times: dict[str, list[tuple[float, float]]] = {series: [] for series in SERIES}
    for number in range(options.rounds + 1):
        for series in SERIES:
            clients = int(series.rpartition("_")[2])
            calls = options.calls if clients > 1 else options.calls // 4
            halves: dict[int, float] = {}
            busy: dict[int, float] = {}
            order = (kept, plain) if number % 2 else (plain, kept)
            for server in order:
                name = f"{series} {number}"
                make = (
                    writing(texts, name)
                    if series.startswith("create")
                    else updating(texts, name, notes[id(server)])
                )
                before = server.processor_seconds()
                halves[id(server)] = (await drive(server, clients, calls, make)).rate
                busy[id(server)] = 1_000 * (server.processor_seconds() - before) / calls
            if number:  # the first warms up
                rates[series].append((halves[id(kept)], halves[id(plain)]))
                times[series].append((busy[id(kept)], busy[id(plain)]))
    figures: dict[str, object] = {}
    for series, pairs in rates.items():
        ratios = [with_history / without for with_history, without in pairs]
        figures[series] = {
            "with_per_s": middle([pair[0] for pair in pairs], 1),
            "without_per_s": middle([pair[1] for pair in pairs], 1),
            "ratio": round(median(ratios), 3),
            "lowest": round(min(ratios), 3),
            "highest": round(max(ratios), 3),
            "processor_ms_with": middle([pair[0] for pair in times[series]], 2),
            "processor_ms_without": middle([pair[1] for pair in times[series]], 2),
        }
    return figures


async def _make_notes(server: Serving, texts: list[str]) -> list[str]:
    found: list[str] = []
    async with RawClient(server.host, server.port) as client:
        for number in range(NOTES):
            answer = await client.exchange(*writing(texts, "noted")(number))
            found.append(answer.decode().partition('"id":"')[2][:36])
    return found


def updating(texts: list[str], series: str, notes: list[str]) -> Callable[[int], Request]:
    """Updates of the notes in turn: of each text one paragraph is another."""

    def request(number: int) -> Request:
        body = [texts[i] for i in range(TEXT_REPEATS)]
        body[number % TEXT_REPEATS] = f"{series} {number} {texts[number % len(texts)]}"
        return "lithos_write", {
            "id": notes[number % len(notes)],
            "title": f"Measured noted {number % len(notes)}",
            "content": "\n\n".join(body),
            "agent": f"bench-{number % 16}",
        }

    return request


def _measure_store(updates: int) -> dict[str, object]:
    draw = random.Random(5)
    words = [f"{draw.randrange(16**6):06x}" for _ in range(2_000)]
    lines = [" ".join(draw.choices(words, k=9)) for _ in range(32)]
    began = datetime(2026, 1, 1, tzinfo=UTC)
    with tempfile.TemporaryDirectory(prefix="lithos-bench-") as folder:
        path = Path(folder) / HISTORY
        store = HistoryStore.open(path, began)
        started = time.perf_counter()
        for number in range(1, updates + 1):
            lines[draw.randrange(len(lines))] = " ".join(draw.choices(words, k=9))
            at = began + timedelta(seconds=number)
            head = f"---\nversion: {number}\nupdated_at: '{at.isoformat()}'\n---\n# Note\n\n"
            text = head + "\n".join(lines)
            version = NewVersion(
                note_id=NOTE, version=number, at=at, agent=f"agent-{number % 16}",
                op=UPDATED, path="folder/a-note.md", title="A note", data=text.encode(), changed=("tags",),
            )  # fmt: skip
            store.add([version], is_pending=False)
        seconds = time.perf_counter() - started
        listings: list[float] = []
        for _ in range(9):
            started = time.perf_counter()
            store.rows(NOTE, 1_000)
            listings.append(1_000 * (time.perf_counter() - started))
        reads: list[float] = []
        for version_read in range(1, updates, max(1, updates // 50)):
            started = time.perf_counter()
            store.content(NOTE, version_read)
            reads.append(1_000 * (time.perf_counter() - started))
        store.close()
        size = path.stat().st_size
    return {
        "updates": updates,
        "file_mb": round(size / 1e6, 1),
        "bytes_per_version": round(size / updates),
        "commits_per_s": round(updates / seconds, 1),
        "list_1000_ms": round(median(listings), 2),
        "read_ms": round(median(reads), 3),
    }


if __name__ == "__main__":
    main()
