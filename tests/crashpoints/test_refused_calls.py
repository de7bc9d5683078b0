"""Failures of system calls.

Each changing call fails once. The answer must report it, and the server must continue.
"""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from tests.crashpoints.recording import recording
from tests.crashpoints.script import Script
from tests.crashpoints.sweep import record
from tests.crashpoints.verdict import Verdict
from tests.repeats import repeats

#: Number of calls between two failures in one run. It is higher than the number of calls of a repeated
#: change, and of the transaction in which a start creates the tables of coordination.db again.
APART = 90
#: The gate makes one of this many runs. All runs together let every call fail.
STRIDE = repeats("REFUSALS_EVERY", 15)
CALLS = 10_000


async def refuse(folder: Path, first: int, code: int) -> Script:
    """Run the script. Every `APART`th call fails."""
    data = folder / "data"
    data.mkdir(parents=True)
    with recording(data, dict.fromkeys(range(first, CALLS, APART), code)) as recorder:
        script = Script(recorder, data)
        await script.run()
    # A failed start may leave a database open until its process ends.
    shutil.copytree(data, folder / "copy")
    await Verdict(script, script.here).check(folder / "copy")
    return script


@pytest.mark.slow
@pytest.mark.deadline(300)
async def test_failed_call_is_reported_and_undone_or_completed(tmp_path: Path) -> None:
    """behaviours 1, 63, 139, 193"""
    whole = await record(tmp_path)
    failed = refused = 0
    for first in range(0, APART, STRIDE):
        code = (errno.ENOSPC, errno.EIO)[first // STRIDE % 2]
        try:
            script = await refuse(tmp_path / str(first), first, code)
        except Exception as failure:
            raise AssertionError(f"every {APART}th call from {first} on failed with {code}") from failure
        told = {lane: [step.told for step in steps] for lane, steps in script.lanes.items()}
        assert told == {lane: [step.told for step in steps] for lane, steps in whole.lanes.items()}
        failed, refused = failed + len(script.recorder.failed), refused + len(script.refused)
    runs = len(range(0, APART, STRIDE))
    assert failed > 13 * runs
    assert refused > 3 * runs
    print(f"{failed} calls failed, {refused} answers said so")  # noqa: T201 - for `pytest -s`
