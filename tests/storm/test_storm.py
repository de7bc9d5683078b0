"""A short storm over one note, with kill -9 in its middle."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.storm.storm import Storm


@pytest.mark.slow
@pytest.mark.deadline(180)
async def test_no_text_of_anybody_is_lost_at_one_note(tmp_path: Path) -> None:
    """behaviours 216, 219 and 226: agents that append and edit, a person who saves, and a kill in between."""
    outcome = await Storm(tmp_path / "data", 12.0).run()
    print(outcome)  # noqa: T201 - for `pytest -s`
    assert not outcome.lost, outcome.lost[:5]
    assert outcome.appended > 50
    assert outcome.replaced > 10
    assert outcome.saved > 10
