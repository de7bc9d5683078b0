"""ISO dates that are spelled out in words for the indexes."""

from __future__ import annotations

import pytest

from lithos.text.chunk import MOST_DATES, chunk_text, dates_in_words, spell_dates


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("on 2026-03-05.", "on 5 March 2026."),
        ("2024-02-29T10:12:00Z", "29 February 2024 10:12:00Z"),
        ("2026-02-29 is no day", "2026-02-29 is no day"),
        ("2026-13-01", "2026-13-01"),
        ("0000-01-01", "0000-01-01"),
        ("id 12026-03-05 and 2026-03-05-7", "id 12026-03-05 and 2026-03-05-7"),
        ("(2026-12-31)", "(31 December 2026)"),
    ],
)
def test_only_valid_iso_dates_are_spelled_out(text: str, spelled: str) -> None:
    assert spell_dates(text) == spelled


def test_each_date_is_spelled_out_once_up_to_a_limit() -> None:
    assert dates_in_words("2026-03-05 2026-03-06 2026-03-05") == "5 March 2026\n6 March 2026"
    assert dates_in_words("nothing") == ""
    many = " ".join(f"{year}-01-01" for year in range(1000, 2000))
    assert len(dates_in_words(many).splitlines()) == MOST_DATES


def test_dates_at_piece_boundaries_are_found() -> None:
    for before in range(65_500, 65_540):
        assert dates_in_words("x" * before + " 2026-03-05 " + "y" * 70_000) == "5 March 2026"


def test_chunk_is_embedded_with_spelled_out_dates_and_shown_unchanged() -> None:
    (chunk,) = chunk_text("Anna, 2026-03-05 10:12", "We met.")
    assert "5 March 2026" in chunk.embedded
    assert "2026-03-05" not in chunk.embedded
    assert chunk.text.startswith("Anna, 2026-03-05 10:12")
