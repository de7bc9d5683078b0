"""Addresses of sessions and turns: accepted forms, and the form in notes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lithos.kernel.values.errors import InvalidInput
from lithos.sessions.answers.addresses import TurnAddress, read_address

MOMENT = datetime(2026, 11, 29, 12, 30, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ses_01", TurnAddress("ses_01")),
        ("session:ses_01", TurnAddress("ses_01")),
        ("ses_01#12", TurnAddress("ses_01", 12)),
        ("session:ses_01#12", TurnAddress("ses_01", 12)),
        ("session:5d1f-aa@2026-11-29T12:30:05Z", TurnAddress("5d1f-aa", None, MOMENT)),
    ],
)
def test_address_names_session_and_turn(text: str, address: TurnAddress) -> None:
    assert read_address(text) == address


@pytest.mark.parametrize("address", [TurnAddress("a"), TurnAddress("a", 3), TurnAddress("a", None, MOMENT)])
def test_source_of_a_note_is_read_as_the_same_address(address: TurnAddress) -> None:
    assert read_address(address.source) == address


@pytest.mark.parametrize("text", ["session:", "session:#3", "ses_01#", "ses_01#x", "ses_01#²", "ses_01@noon"])
def test_damaged_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidInput, match="such as ses_0123456789abcdef#12"):
        read_address(text)


def test_very_long_number_of_a_turn_is_refused() -> None:
    with pytest.raises(InvalidInput):
        read_address("ses_01#" + "9" * 100_000)
