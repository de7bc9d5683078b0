"""Recall and cost of nearest neighbours by size, read from the table that `bench.nearest` writes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

KEPT: Final = Path(__file__).parent / "nearest.md"
#: Columns of the table that are shown, and their names there.
COLUMNS: Final = (
    "Notes", "Chunks", "Vectors", "In use", "Exact, ms", "Lists, ms (p95)",
    "Recall@10", "Recall@200", "Build, s", "A new note, ms", "Bytes a chunk besides",
)  # fmt: skip


@frozen
class Recall:
    """A row: the cells of `COLUMNS`, and where it is from."""

    notes: int
    cells: tuple[str, ...]
    source: str


def read_recall(report: str, source: str) -> list[Recall]:
    """The rows of the first table of a report of `bench.nearest`."""
    rows: list[Recall] = []
    head: list[str] = []
    for line in report.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if line.startswith("| Notes |"):
            head = cells
        elif head and not line.startswith("|"):
            break
        elif head and not line.startswith("| ---"):
            by_name = dict(zip(head, cells, strict=True))
            notes = int(by_name["Notes"].replace(",", ""))
            rows.append(Recall(notes, tuple(by_name[name] for name in COLUMNS), source))
    return rows


def measure_recall(sizes: Sequence[int], timeout: float) -> list[Recall]:
    """`bench.nearest` for these sizes, in a process of its own that may run for `timeout` seconds."""
    with tempfile.TemporaryDirectory(prefix="lithos-recall-") as folder:
        report = Path(folder) / "nearest.md"
        wanted = ",".join(str(size) for size in sizes)
        command = [sys.executable, "-m", "bench.nearest", "--sizes", wanted, "--report", str(report)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        if done.returncode:
            raise RuntimeError(f"bench.nearest ended with {done.returncode}: {done.stderr[-500:]}")
        return read_recall(report.read_text(), "this run")


def merge_recall(measured: Sequence[Recall], kept: Sequence[Recall]) -> list[Recall]:
    """Rows of this run, and those that are kept for sizes it did not measure, by size."""
    known = {row.notes for row in measured}
    return sorted([*measured, *(row for row in kept if row.notes not in known)], key=lambda row: row.notes)
