"""Power failure at any change to the data directory. Unsynced data remain in part or are lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crashpoints.sweep import record, sweep
from tests.crashpoints.test_kill_points import EVERY, POINTS


@pytest.mark.slow
@pytest.mark.takes(8)
@pytest.mark.deadline(300)
@pytest.mark.parametrize(
    ("mode", "every"),
    [("power loss", EVERY), ("power loss, names first", EVERY), ("power loss, by luck", 12 * EVERY)],
    ids=["nothing unsynced", "names first", "luck"],
)
async def test_power_failure_at_any_point_keeps_confirmed_data_complete(
    mode: str, every: int, tmp_path: Path
) -> None:
    """docs/spec/lifecycle.md §3: confirmed changes are on stable storage."""
    script = await record(tmp_path)
    swept = await sweep(script, mode, tmp_path, every=every)
    assert not swept.faults, swept.faults
    assert swept.points > POINTS
    assert swept.disks > 50 // EVERY
    print(f"{mode}: {swept.points} points, {swept.disks} disks")  # noqa: T201 - for `pytest -s`
