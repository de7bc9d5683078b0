"""A day with two clients, from transcripts that grow to the answers of a new session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.session_day import DECISIONS, live_day

pytestmark = [pytest.mark.slow, pytest.mark.needs("sessions")]


def test_new_session_finds_what_was_decided_yesterday(tmp_path: Path) -> None:
    """Behaviour 327: found by a question, with its turn, within a minute of being written."""
    outcome = live_day(tmp_path)
    assert outcome.rows.keys() == DECISIONS.keys()
    for client, (decision, _) in DECISIONS.items():
        row, read = outcome.rows[client], outcome.read[client]
        assert (row["client"], row["match"]) == (client, "strong")
        assert f"[turn {row['turn']}] assistant" in read["content"]
        assert decision in read["content"].partition(f"[turn {row['turn']}] ")[2]
        assert f"## Earlier sessions\n- {row['when'][:10]}, {client}, " in outcome.briefings[client]
        assert decision in outcome.briefings[client]
    assert outcome.source.startswith(f"session:{outcome.rows['claude-code']['id']}@")
    assert outcome.are_unchanged
