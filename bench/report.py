"""Output of all benchmarks: one JSON line with the medians over the rounds."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import trio
from attrs import asdict

from bench.client import Latencies


def middle(values: Sequence[float], digits: int = 3) -> float:
    """Return the rounded median."""
    return round(median(values), digits)


def middle_of(rounds: Sequence[Latencies]) -> dict[str, float]:
    """Return the median of each figure over the rounds."""
    rows = [asdict(one) for one in rounds]
    return {name: middle([row[name] for row in rows]) for name in rows[0]}


def median_ratio(ours: Sequence[Latencies], theirs: Sequence[Latencies], figure: str = "p50") -> float:
    """Return the median of the ratios within rounds.

    Ratios within one round are independent of the load of the machine.
    """
    pairs = zip(ours, theirs, strict=True)
    return middle([getattr(one, figure) / (getattr(other, figure) or 0.001) for one, other in pairs], 2)


def print_report(bench: str, **figures: Any) -> None:
    """Print one line to stdout. `load` is the load average of the machine in the last minute."""
    machine = {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
    }
    print(json.dumps({"bench": bench, **figures, "machine": machine}), flush=True)


def end_by_signal() -> None:
    """Turn SIGTERM into `KeyboardInterrupt`, so that servers are stopped and folders are removed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def describe_machine(load: float) -> str:
    """Return the place and time of a measurement. The load is that of the previous minute."""
    revision = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    cores = len(os.sched_getaffinity(0))
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        f"Revision {revision or 'unknown'}, {now}, {cores} cores, Python {platform.python_version()}, "
        f"load {load:.1f} before. Clients share the cores with the server."
    )


def render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def describe_error(error: BaseException, limit: float) -> str:
    """Return an error as one line for a report. For an exception group, return its first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, trio.TooSlowError):
        return f"not done within {limit:.0f} s"
    return " ".join(f"{type(error).__name__}: {error}".split())[:200].replace("|", "/")
