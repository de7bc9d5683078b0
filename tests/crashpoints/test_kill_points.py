"""Kill of the process between any two changes to its data directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crashpoints.sweep import record, sweep
from tests.repeats import repeats

#: Minimum number of crash points. The actual number depends on SQLite's writes.
POINTS = 440
#: One of this many different disks is tried. The nightly run tries all disks.
EVERY = repeats("CRASHES_EVERY", 8)


@pytest.mark.slow
@pytest.mark.deadline(300)
async def test_kill_at_any_point_keeps_confirmed_data_complete(tmp_path: Path) -> None:
    """behaviours 176, 187, 193, 226: kill -9 comes between any two system calls."""
    script = await record(tmp_path)
    swept = await sweep(script, "kill", tmp_path, every=EVERY)
    assert not swept.faults, swept.faults
    assert swept.points > POINTS
    assert swept.disks > 100 // EVERY
    print(f"kill: {swept.points} points, {swept.disks} disks")  # noqa: T201 - for `pytest -s`
