"""The end of the process between any two changes that it makes to its data directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crashpoints.sweep import record, sweep
from tests.repeats import repeats

#: So many there are at least; the number rises and falls with what SQLite writes.
POINTS = 440
#: Of the disks that differ one in so many is tried; the night tries all.
EVERY = repeats("CRASHES_EVERY", 8)


@pytest.mark.slow
@pytest.mark.deadline(300)
async def test_an_end_at_any_point_loses_and_halves_nothing(tmp_path: Path) -> None:
    """behaviours 176, 187, 193, 226: kill -9 between any two system calls"""
    script = await record(tmp_path)
    swept = await sweep(script, "kill", tmp_path, every=EVERY)
    assert not swept.faults, swept.faults
    assert swept.points > POINTS
    assert swept.disks > 100 // EVERY
    print(f"kill: {swept.points} points, {swept.disks} disks")  # noqa: T201 - for `pytest -s`
