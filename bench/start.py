"""Benchmark of server starts: the first start on new notes, and the response times after later starts.

Run `python -m bench.start --notes 10000`. `first` and `second` are the seconds until the server listens (full
text covers every note) and until all notes are searchable, with the memory of the server. `again` is measured
on the same directory. It contains the seconds until a server has answered a search (`first_answer`), until
`lithos --version` has ended (`version`), and until a second server on stdio, next to a running server, has
answered (`stdio`). `stdio_mib` is the private memory of the second server. Each round uses a new directory
with files in the page cache.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.report import middle, print_report
from bench.server import LITHOS, PATIENCE, data_directory, installed_environment, launched, serving
from bench.stdio import started

QUERY = "how to checkpoint the journal"
PARTS = ("first", "again")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.start", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--data", type=Path, help="use this directory, which limits `first` to one round")
    options = parser.parse_args()
    figures: dict[str, list[dict[str, float]]] = {"first": [], "second": [], "again": []}
    for _ in range(1 if options.data and "first" in options.parts else options.rounds):
        with data_directory(options.notes, given=options.data) as data:
            for part in ("first", "second") if "first" in options.parts else ():
                figures[part].append(_started(data))
            if "again" in options.parts:
                if "first" not in options.parts and not options.data:
                    _started(data)
                figures["again"].append(_answers(data))
    print_report("start", notes=options.notes, **{part: _middle(of) for part, of in figures.items() if of})


def _started(data: Path) -> dict[str, float]:
    with serving(data) as server:
        return {
            "listening_s": server.listening,
            "searchable_s": server.searchable,
            "resident_mib": server.resident(),
            "peak_mib": server.peak(),
        }


def _answers(data: Path) -> dict[str, float]:
    figures = {"first_answer": first_answer(data), "version": version_seconds()}
    with started(data) as owner:
        owner.settle()
        with started(data) as other:
            return figures | {"stdio": other.greeted, "stdio_mib": other.own_mib()}


def first_answer(data: Path, patience: float = PATIENCE) -> float:
    """Return the seconds from the start of a server to its answer to a full-text search of all notes."""
    with launched(data, patience=patience) as (_, url, began):
        search = {"name": "lithos_search", "arguments": {"query": QUERY, "mode": "fulltext"}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": search}
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        request = urllib.request.Request(f"{url}/mcp", json.dumps(message).encode(), headers)
        while True:
            with urllib.request.urlopen(request, timeout=patience) as response:
                answer: dict[str, Any] = json.load(response)
            seconds = time.perf_counter() - began
            content = answer["result"]["structuredContent"]
            # If a start takes long, the server answers before all notes are indexed. The answer then reports
            # the indexing.
            if "indexing" not in content or seconds > patience:
                break
            time.sleep(0.02)
    if not content["results"]:
        raise AssertionError(f"the search found nothing: {answer}")
    return seconds


def version_seconds() -> float:
    """Return how many seconds `lithos --version` takes."""
    began = time.perf_counter()
    subprocess.run([*LITHOS, "--version"], stdout=subprocess.DEVNULL, check=True, env=installed_environment())
    return time.perf_counter() - began


def _middle(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: middle([row[name] for row in rows]) for name in rows[0]}


if __name__ == "__main__":
    main()
