"""Where the event loop spends a hybrid search, in this process and without a front.

`python -m bench.hot_search DATA`
`cProfile` sees the thread of the event loop alone; `other threads` is the rest of the processor time, which
is tantivy, the model and the vectors. The profiler itself slows Python code to about a half: the order
counts, not the seconds.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import pstats
import subprocess
import sys
import time
from pathlib import Path

import attrs
import trio

from bench.corpus import queries
from lithos.app import Server, running_server
from lithos.config.load import load_config

SEARCHES = 1_000
WARM_UP = 100
TOP = 15


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.hot_search", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--searches", type=int, default=SEARCHES)
    options = parser.parse_args()
    print(trio.run(_profile, options.data, options.searches))


def profile_searches(data: Path, searches: int = SEARCHES, timeout: float | None = None) -> str:
    """The profile as text, taken in a process of its own, which may run for `timeout` seconds."""
    command = [sys.executable, "-m", "bench.hot_search", str(data), "--searches", str(searches)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=timeout)
    return done.stdout.strip()


async def _profile(data: Path, searches: int) -> str:
    config = load_config(data_dir=data, environment={}).config
    quiet = attrs.evolve(
        config,
        server=attrs.evolve(config.server, watch_files=False),
        # Another thread would embed all notes meanwhile.
        search=attrs.evolve(config.search, tier="static"),
    )
    async with running_server(quiet) as server:
        await server.searchable()
        texts = queries(3, searches)
        await _search(server, texts[:WARM_UP])
        plain = await _timed_search(server, texts)
        profile = cProfile.Profile()
        profile.enable()
        await _search(server, texts)
        profile.disable()
    out = io.StringIO()
    pstats.Stats(profile, stream=out).sort_stats("tottime").print_stats(TOP)
    return f"{plain}\n{_shorten(out.getvalue())}"


async def _timed_search(server: Server, texts: list[str]) -> str:
    wall, loop, all_threads = time.perf_counter(), time.thread_time(), time.process_time()
    await _search(server, texts)
    wall = time.perf_counter() - wall
    loop = time.thread_time() - loop
    others = time.process_time() - all_threads - loop
    each = 1000 / len(texts)
    return (
        f"one hybrid search without the profiler: {wall * each:.2f} ms; processor: "
        f"event loop {loop * each:.2f} ms, other threads {others * each:.2f} ms"
    )


async def _search(server: Server, texts: list[str]) -> None:
    for text in texts:
        answer = await server.tools.call("lithos_search", {"query": text, "mode": "hybrid"})
        assert answer is not None
        assert "results" in answer, answer


def _shorten(printed: str) -> str:
    """The table without blank lines, each path from the package on."""
    lines: list[str] = []
    for line in printed.splitlines():
        figures, _, place = line.rpartition(" ")
        for root in ("site-packages/", "/lithos/", "/lib/python"):
            if root in place:
                place = place[place.index(root) + (len(root) if root != "/lithos/" else 1) :]
        if line.strip():
            lines.append(f"{figures} {place}".rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    main()
