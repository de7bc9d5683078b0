"""Cuts between graphemes (behaviour 421)."""

from __future__ import annotations

import unicodedata

import pytest
from apsw.unicode import grapheme_next_break
from hypothesis import given
from hypothesis import strategies as st

from lithos.kernel.values.graphemes import LONGEST, beginning, whole

#: One grapheme each: letters with marks, conjuncts, syllables of letters, emoji, flags, a line break.
GRAPHEMES = (
    "a", " ", "語", "한", "e\u0301", "\r\n", "\u1112\u1161\u11ab", "👨‍👩‍👧", "👍🏽", "❤️‍🔥", "1️⃣", "🇩🇪", "🇫🇷",
    "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "क्षि", "न्दी", "ที่", "ก็", "\ue000", "\u0378", "ｶ", "ｶ\uff9e", "عَ",
)  # fmt: skip
PARTS = st.lists(st.tuples(st.sampled_from(GRAPHEMES), st.integers(1, 9)), max_size=12)


def ends_of(text: str) -> list[int]:
    """Return the ends of the graphemes, found from the beginning of the text."""
    ends, at = [], 0
    while at < len(text):
        at = grapheme_next_break(text, at)
        ends.append(at)
    return ends


@pytest.mark.parametrize("grapheme", GRAPHEMES)
def test_grapheme_is_shown_whole_or_not_at_all(grapheme: str) -> None:
    """behaviour 421"""
    assert ends_of(grapheme) == [len(grapheme)]
    for most in range(2, 2 + len(grapheme)):
        assert beginning(f"語语{grapheme}語", most) == "語语"
    assert beginning(f"語语{grapheme}語", 2 + len(grapheme)) == f"語语{grapheme}"


@given(PARTS, st.data())
def test_cut_equals_the_last_end_of_a_grapheme(parts: list[tuple[str, int]], data: st.DataObject) -> None:
    """behaviour 421: looking back a few characters gives what a scan from the beginning gives."""
    text = "".join(grapheme * count for grapheme, count in parts)
    ends = [0, *ends_of(text)]
    at = data.draw(st.integers(0, len(text)))
    least = data.draw(st.sampled_from([end for end in ends if end <= at]))
    assert whole(text, at, least) == max((end for end in ends if least < end <= at), default=at)


def test_flags_are_divided_in_pairs_however_many_precede() -> None:
    flags = "🇩🇪" * 700
    assert [whole(flags, at) for at in (1_001, 1_002, 1_003)] == [1_000, 1_002, 1_002]
    assert whole("x" + flags, 1_002, 1) == 1_001


def test_one_grapheme_without_end_is_cut_at_the_limit() -> None:
    """A letter with thousands of marks must not prevent progress."""
    marks = "e" + "\u0301" * 10_000
    assert whole(marks, 5_000) == 5_000
    assert whole("語" + marks, 1 + LONGEST // 2) == 1


def test_cut_of_a_marked_text_keeps_its_letters() -> None:
    text = unicodedata.normalize("NFD", "é" * 100)
    assert unicodedata.normalize("NFC", beginning(text, 11)) == "é" * 5
