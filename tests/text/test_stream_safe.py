"""Normalisation in linear time for any run of marks (UAX #15, Stream-Safe Text Format)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.text.words.analysis import LONGEST_RUN, drop_excess_marks, fold, normalise, separate_marks

ACUTE, BELOW, JOINER, VOICED = "\u0301", "\u0323", "\u034f", "\uff9e"
TEXTS = st.text(
    st.sampled_from(["a", "é", ACUTE, BELOW, "\u0344", "ｶ", VOICED, "語", " ", "…", "한", "\u0e31"])
)
MARKED = st.lists(st.tuples(TEXTS, st.integers(1, 60))).map(
    lambda parts: "".join(text * times for text, times in parts)
)


def longest_run(text: str) -> int:
    """Return the longest run of marks after compatibility decomposition, counted as in UAX #15."""
    longest = run = 0
    for character in unicodedata.normalize("NFKD", text):
        run = run + 1 if unicodedata.combining(character) else 0
        longest = max(longest, run)
    return longest


@pytest.mark.parametrize(
    "text", ["", "abc", "Ångström", "한국어", "e" + ACUTE * LONGEST_RUN, "─" * 500, "👨‍👩‍👧" * 50]
)
def test_ordinary_text_stays_unchanged(text: str) -> None:
    assert separate_marks(text) == drop_excess_marks(text) == text
    for form in ("NFC", "NFKC"):
        assert normalise(form, text) == unicodedata.normalize(form, text)


def test_joiner_is_inserted_before_the_31st_consecutive_mark() -> None:
    """UAX #15: a text has at most 30 consecutive non-starters"""
    assert separate_marks("e" + ACUTE * 31) == "e" + ACUTE * 30 + JOINER + ACUTE
    assert separate_marks(ACUTE * 61) == ACUTE * 30 + JOINER + ACUTE * 30 + JOINER + ACUTE
    assert separate_marks("é" + ACUTE * 30) == "é" + ACUTE * 29 + JOINER + ACUTE
    assert separate_marks("ｶ" + VOICED * 31) == "ｶ" + VOICED * 30 + JOINER + VOICED
    assert drop_excess_marks("e" + ACUTE * 40 + "x") == "e" + ACUTE * 30 + "x"


@given(MARKED)
def test_no_run_exceeds_thirty_marks_and_nothing_else_changes(text: str) -> None:
    assert longest_run(separate_marks(text)) <= LONGEST_RUN
    assert longest_run(drop_excess_marks(text)) <= LONGEST_RUN
    assert separate_marks(text).replace(JOINER, "") == text
    assert separate_marks(separate_marks(text)) == separate_marks(text)
    if longest_run(text) <= LONGEST_RUN:
        assert separate_marks(text) == drop_excess_marks(text) == text


@given(MARKED)
def test_folding_is_idempotent_for_any_marks(text: str) -> None:
    """search §1"""
    assert fold(fold(text)) == fold(text)


def test_long_text_folds_equally_in_pieces_and_as_a_whole() -> None:
    """search §1: pieces end between letters, never between a letter and its marks."""
    piece = "Ünï " + "e" + ACUTE * 20 + "ΑΣ 한국 ｶﾞ "
    assert fold(piece * 10_000) == fold(piece) * 10_000
    assert fold("語" * 200_000) == "語" * 200_000
