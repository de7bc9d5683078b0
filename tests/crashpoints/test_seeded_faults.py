"""Simulated bugs, each of which the crash sweep must find."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithos.notes.files.files import NoteFiles
from tests.crashpoints.sweep import record, sweep
from tests.repeats import first_of
from tests.simulation.bugs import BUGS, Patch

pytestmark = pytest.mark.deadline(300)


def leave_files_behind(patch: Patch) -> None:
    """Skip the cleanup at a server start."""
    patch.setattr(NoteFiles, "recover", lambda *_: 0)


#: Crash mode and expected failure message for each bug. The gate tries only the first bug.
FOUND = {
    "drop_fsync_of_notes": ("power loss", "note alpha"),
    "lose_a_rename": ("power loss", ""),
    "drop_fsync_of_databases": ("power loss", "agent ada"),
    "acknowledge_early": ("power loss", "acknowledged events are gone"),
    "leave_files_behind": ("kill", "left behind"),
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", first_of([*FOUND], 1))
async def test_crash_sweep_finds_a_simulated_bug(
    bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/spec/lifecycle.md §1 and §3, behaviour 193"""
    mode, words = FOUND[bug]
    {**BUGS, "leave_files_behind": leave_files_behind}[bug](monkeypatch)
    script = await record(tmp_path)
    if bug != "leave_files_behind":
        monkeypatch.undo()
    (fault,) = (await sweep(script, mode, tmp_path)).faults
    assert words in fault[2].lower()
