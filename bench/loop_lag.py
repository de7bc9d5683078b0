"""How long the event loop is held up under a mixed load, and by what.

`python -m bench.loop_lag --notes 10000`. The server runs in this process, its clients in another.
`embedding` is the time from listening to searchable after a first start, `steady` a load of reads,
writes, deletions and whole listings. `lag` is how late a task wakes that wants to wake every 5 ms;
`steps` are the longest turns any task took, with their share of processor time (a busy machine
stretches the rest) and the code they were last seen in; `collections` are the longest pauses of the
garbage collector.
"""

from __future__ import annotations

import argparse
import gc
import linecache
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import trio

from bench.report import print_report
from bench.server import data_directory
from lithos import __version__
from lithos.app import Server, running_server
from lithos.config.load import load_config
from lithos.front.server.ports import FrontSettings
from lithos.front.server.serve import serve_http

PERIOD = 0.005
#: A turn of this length is worth a look at the code it is in.
LONG_STEP = 0.008
SHOWN = 6


class StepWatch(trio.abc.Instrument):
    """The longest turns of tasks, and what they were doing; a thread looks over their shoulder."""

    def __init__(self) -> None:
        self.longest: list[tuple[float, float, str, str]] = []
        self._began: float | None = None
        self._cpu_began = 0.0
        self._seen = ""
        self._loop_thread = threading.get_ident()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._seen = ""
        self._began, self._cpu_began = time.perf_counter(), time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        began, self._began = self._began, None
        if began is None:
            return  # the turn in which the watch was set up
        seconds = time.perf_counter() - began
        if seconds >= LONG_STEP:
            cpu = time.thread_time() - self._cpu_began
            self.longest.append((cpu, seconds, task.name, self._seen))
            self.longest.sort(reverse=True)
            del self.longest[SHOWN:]

    def restart(self) -> None:
        """Forget what was seen so far."""
        self.longest.clear()

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(LONG_STEP / 2):
            began = self._began
            if began is not None and time.perf_counter() - began > LONG_STEP / 2:
                self._seen = _place(sys._current_frames().get(self._loop_thread))


def _place(frame: FrameType | None) -> str:
    """The innermost frames of our own code, innermost first."""
    places: list[str] = []
    while frame is not None and len(places) < 3:
        code = frame.f_code
        if "/lithos/" in code.co_filename:
            line = linecache.getline(code.co_filename, frame.f_lineno).strip()
            places.append(f"{Path(code.co_filename).name}:{frame.f_lineno} {line[:60]}")
        frame = frame.f_back
    return " < ".join(places)


class CollectorWatch:
    """How long the garbage collector stopped everything, in milliseconds."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self._began = 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, details: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self.pauses.append(round(1000 * (time.perf_counter() - self._began), 1))

    def take(self) -> list[float]:
        """The longest since the last call."""
        longest = sorted(self.pauses, reverse=True)[:SHOWN]
        self.pauses.clear()
        return longest

    def close(self) -> None:
        """Stop watching."""
        gc.callbacks.remove(self._note)


class LagMeter:
    """Wakes every `PERIOD` and notes how late it was, in milliseconds."""

    def __init__(self) -> None:
        self.lags: list[float] = []

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            began = time.perf_counter()
            await trio.sleep(PERIOD)
            self.lags.append(1000 * (time.perf_counter() - began - PERIOD))

    def take(self) -> dict[str, float]:
        """Percentiles since the last call."""
        ordered, self.lags = sorted(self.lags), []
        count = len(ordered)
        return {
            "p50_ms": round(ordered[count // 2], 2),
            "p99_ms": round(ordered[int(0.99 * count)], 2),
            "max_ms": round(ordered[-1], 2),
            "over_20_ms": sum(lag > 20 for lag in ordered),
            "samples": count,
        }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.loop_lag", description=__doc__)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    with data_directory(options.notes) as data:
        trio.run(_measure, data, options)


async def _measure(data: Path, options: argparse.Namespace) -> None:
    figures: dict[str, Any] = {}
    watch, meter, collector = StepWatch(), LagMeter(), CollectorWatch()
    trio.lowlevel.add_instrument(watch)
    async with _listening(data) as (server, port), trio.open_nursery() as nursery:
        nursery.start_soon(meter.run)
        watch.restart()
        collector.take()
        began = time.perf_counter()
        await server.searchable()
        await trio.sleep(1.0)  # the first snapshot of the vectors is part of it
        figures["embedding"] = {
            "seconds": round(time.perf_counter() - began, 1),
            **_figures(meter, watch, collector),
        }
        calls = await _drive(port, options.seconds)
        figures["steady"] = {"load": calls, **_figures(meter, watch, collector)}
        nursery.cancel_scope.cancel()
    trio.lowlevel.remove_instrument(watch)
    watch.close()
    collector.close()
    print_report("loop_lag", notes=options.notes, **figures)


def _figures(meter: LagMeter, watch: StepWatch, collector: CollectorWatch) -> dict[str, Any]:
    steps = [
        {"cpu_ms": round(1000 * cpu, 1), "ms": round(1000 * seconds, 1), "task": name, "in": place}
        for cpu, seconds, name, place in watch.longest
    ]
    watch.restart()
    return {"lag": meter.take(), "steps": steps, "collections_ms": collector.take()}


@asynccontextmanager
async def _listening(data: Path) -> AsyncIterator[tuple[Server, int]]:
    config = load_config(config_path=None, data_dir=data, environment={}, overrides={}).config
    shutdown = trio.Event()
    settings = FrontSettings(host="127.0.0.1", port=0, version=__version__, max_body_bytes=2**24)
    async with running_server(config) as server, trio.open_nursery() as nursery:
        front = partial(serve_http, settings, server.tools, server.state, shutdown=shutdown)
        _, port = await nursery.start(front)
        yield server, port
        shutdown.set()


async def _drive(port: int, seconds: float) -> str:
    command = [sys.executable, "-m", "bench.load", "127.0.0.1", str(port), str(seconds)]
    finished = await trio.run_process(command, capture_stdout=True, stderr=subprocess.DEVNULL)
    return finished.stdout.decode().strip()


if __name__ == "__main__":
    main()
