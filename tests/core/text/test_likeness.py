"""Texts that say the same share pairs of words; others on the same subject do not (behaviour 287)."""

from __future__ import annotations

import pytest

from lithos.core.text.likeness import LEAST_PAIRS, LOOKED_AT, likeness, match_of, word_pairs

PUMP = (
    "The pump in the cellar runs every night. When the water is higher than the mark it starts by itself. "
    "Clean the filter in spring, and look whether the float still moves."
)
ON_PUMPS = (
    "A pump needs a filter. In spring the water rises, and whoever has a cellar should think of a second "
    "pump with a float of its own, since one that starts every night wears out."
)


def alike(one: str, other: str) -> float:
    return likeness(word_pairs(one), word_pairs(other))


@pytest.mark.parametrize(
    "rewrite",
    [
        " ".join(reversed(PUMP.split(". "))),
        PUMP.split(". ")[1],
        f"A page about the house. {PUMP} The roof was mended last year by the neighbours, who know how.",
        PUMP.upper(),
    ],
    ids=["reordered", "shortened", "extended", "other case"],
)
def test_a_rewritten_text_is_strongly_alike(rewrite: str) -> None:
    """behaviour 287"""
    assert match_of(alike(PUMP, rewrite)) == "strong"
    assert alike(PUMP, rewrite) == alike(rewrite, PUMP)


def test_another_text_on_the_same_subject_is_not() -> None:
    """behaviour 287"""
    assert match_of(alike(PUMP, ON_PUMPS)) is None


def test_what_says_too_little_is_like_nothing() -> None:
    few = " ".join(PUMP.split()[:LEAST_PAIRS])
    assert alike(few, few) == 0
    assert alike("", PUMP) == 0


def test_signs_of_scripts_without_spaces_count_as_words() -> None:
    one = "今日は地下室のポンプのフィルターを掃除しました。"
    assert match_of(alike(one, f"家について。{one}屋根も直しました。")) == "strong"
    assert match_of(alike(one, "明日は屋根を直すために隣の人が来るそうです。")) is None


def test_no_more_than_the_first_characters_are_looked_at() -> None:
    long = " ".join(f"w{number}" for number in range(LOOKED_AT))
    assert len(word_pairs(long)) < LOOKED_AT / 5
