"""Kill -9 during all kinds of work, repeated on one data directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.faults.kills import kill_again_and_again
from tests.repeats import repeats

KILLS = repeats("KILLS", 3)


@pytest.mark.slow
@pytest.mark.disk
@pytest.mark.takes(20)
@pytest.mark.deadline(300)
async def test_kills_under_a_mixed_load_lose_no_confirmed_change(tmp_path: Path) -> None:
    """behaviours 176, 187, 192, 193"""
    outcome = await kill_again_and_again(tmp_path, KILLS)
    print(f"{outcome.tried}: {outcome.result}")  # noqa: T201 - for `pytest -s`
