"""Failures that a server survives, repeated as often as the time limit of the gate allows.

`test_kill.py` tests kills, `test_full_disk.py` tests a full disk, and `test_bridge.py` tests bridges.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from bench.soak import run_soak
from tests.e2e.faults import Outcome, storage
from tests.e2e.faults import folder as files
from tests.repeats import repeats

SOAK_SECONDS = repeats("SOAK", 30)

Fault = Callable[[Path], Awaitable[Outcome]]


@pytest.mark.slow
async def test_server_recovers_when_write_permission_returns(tmp_path: Path) -> None:
    """behaviours 139, 193"""
    await storage.limits_are_reached(tmp_path)


@pytest.mark.slow
@pytest.mark.takes(15)
@pytest.mark.deadline(120)
@pytest.mark.parametrize(
    "fault",
    [
        files.volume_vanishes,
        files.file_in_pieces,
        partial(files.rename_storm, renames=200),
        pytest.param(partial(files.rapid_touches, touches=3_000), marks=pytest.mark.nightly),
        pytest.param(partial(files.rename_storm, renames=500, mode="poll"), marks=pytest.mark.nightly),
        pytest.param(files.strange_names, marks=pytest.mark.nightly),
    ],
    ids=["volume vanishes", "pieces", "renames", "touches", "renames polled", "names"],
)
async def test_server_follows_external_folder_changes(fault: Fault, tmp_path: Path) -> None:
    """behaviours 135, 136, 137, 198, 199"""
    await fault(tmp_path)


@pytest.mark.nightly
@pytest.mark.takes(70)
def test_memory_is_stable_and_calls_succeed_under_mixed_load() -> None:
    """docs/spec/lifecycle.md §9: no call fails, and calls stay quick.

    The test is too short to find a slow leak.
    """
    soaked = run_soak(SOAK_SECONDS)
    assert not soaked.problems(), soaked
