"""How soon something answers: a second start, `lithos --version`, and a stdio server that bridges to another.

`python -m bench.starts --notes 10000`
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from bench.bridge import started
from bench.report import middle, print_report
from bench.server import PATIENCE, data_directory, installed_environment, launched, serving

QUERY = "how to checkpoint the journal"


@frozen
class Starts:
    """Seconds from the start of a process: to the answer of a search, to its end, and to MCP's greeting.

    The bridge is to a server that has loaded everything.
    """

    first_answer: float
    version: float
    bridge: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.starts", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", type=Path, help="an indexed data directory instead of a new corpus")
    options = parser.parse_args()
    if options.data:
        _run(options, options.data)
        return
    with data_directory(options.notes) as data:
        with serving(data):
            pass  # the first start is measured elsewhere (bench.start)
        _run(options, data)


def _run(options: argparse.Namespace, data: Path) -> None:
    print_report("starts", notes=options.notes, **asdict(measure_starts(data, options.rounds)))


def measure_starts(data: Path, rounds: int, patience: float = PATIENCE) -> Starts:
    """Medians over the rounds, on a data directory that a server has indexed before.

    A process that does not answer within `patience` seconds is killed, which raises an error.
    """
    answers, versions, bridges = [], [], []
    for _ in range(rounds):
        answers.append(first_answer(data, patience))
        versions.append(version_seconds())
        with started(data, patience) as owner:
            owner.settle()
            with started(data, patience) as bridge:
                bridges.append(bridge.greeted)
    return Starts(middle(answers), middle(versions), middle(bridges))


def first_answer(data: Path, patience: float = PATIENCE) -> float:
    """Seconds until a server that is started now has answered a full-text search of all notes over HTTP."""
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
            # A start that takes long answers meanwhile, and says that notes are missing.
            if "indexing" not in content or seconds > patience:
                break
            time.sleep(0.02)
    if not content["results"]:
        raise AssertionError(f"the search found nothing: {answer}")
    return seconds


def version_seconds() -> float:
    """Seconds that `lithos --version` takes."""
    command = shutil.which("lithos", path=str(Path(sys.executable).parent)) or "lithos"
    began = time.perf_counter()
    subprocess.run([command, "--version"], stdout=subprocess.DEVNULL, check=True, env=installed_environment())
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
