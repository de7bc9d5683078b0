"""Similarity: rewritten texts share word pairs, but other texts on the subject do not (behaviour 287)."""

from __future__ import annotations

import numpy as np
import pytest

from lithos.text.words.similarity import (
    FAIR,
    LEAST_COPY,
    LEAST_PAIRS,
    LOOKED_AT,
    Templates,
    clusters,
    likeness,
    match_of,
    word_pairs,
)

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
def test_rewritten_text_is_a_strong_match(rewrite: str) -> None:
    """behaviour 287"""
    assert match_of(alike(PUMP, rewrite)) == "strong"
    assert alike(PUMP, rewrite) == alike(rewrite, PUMP)


def test_text_on_the_same_subject_is_not_a_match() -> None:
    """behaviour 287"""
    assert match_of(alike(PUMP, ON_PUMPS)) is None


def test_short_text_does_not_match_any_other_text() -> None:
    few = " ".join(PUMP.split()[:LEAST_PAIRS])
    assert alike(few, few) == 0
    assert alike("", PUMP) == 0


def test_characters_of_scripts_without_spaces_count_as_words() -> None:
    one = "今日は地下室のポンプのフィルターを掃除しました。"
    assert match_of(alike(one, f"家について。{one}屋根も直しました。")) == "strong"
    assert match_of(alike(one, "明日は屋根を直すために隣の人が来るそうです。")) is None


def test_only_the_first_characters_are_examined() -> None:
    long = " ".join(f"w{number}" for number in range(LOOKED_AT))
    assert len(word_pairs(long)) < LOOKED_AT / 5


def page(subject: str) -> str:
    """Return a page made from a template. Most of its text is the same on every page."""
    return (
        f"# {subject}\n\nWhat we know of {subject} so far. Keep this page short and link what belongs to it. "
        f"Ask the owner of {subject} before you change the table below, since reports are made of it. "
        f"{' '.join(f'{subject}{number}' for number in range(8))}"
    )


def likeness_among(texts: list[str], one: int, other: int) -> float:
    """Return the likeness of two of the texts without the text of their template."""
    known = {str(number): word_pairs(text) for number, text in enumerate(texts)}
    wanted = np.intersect1d(known[str(one)], known[str(other)])
    return Templates.of(known, wanted).likeness(known[str(one)], known[str(other)])


def test_template_pages_do_not_match_but_their_copies_do() -> None:
    """behaviour 400"""
    pages = [page(subject) for subject in ("pump", "roof", "gate", "well")]
    assert match_of(alike(pages[0], pages[1])) == "strong"
    assert likeness_among(pages, 0, 1) < FAIR
    # A page and its copy match: the copy has the same text about the same subject
    assert match_of(likeness_among([*pages, f"{pages[0]} And it leaks."], 0, 4)) == "strong"
    # Three texts are too few to form a template family.
    assert match_of(likeness_among(pages[:3], 0, 1)) == "strong"


def test_blank_forms_do_not_match_but_long_copies_do() -> None:
    """behaviour 400: a form that is not filled in proves no copy, even if many notes contain the form."""
    form = "What went well today and why? What would I do in another way? Whom do I thank?"
    assert likeness_among([form] * 6, 0, 1) == 0
    assert len(word_pairs(PUMP * 2)) < LEAST_COPY
    long = " ".join(f"w{number}" for number in range(LEAST_COPY + 2))
    assert likeness_among([long] * 6, 0, 1) == 1


def test_notes_with_common_words_do_not_form_a_family() -> None:
    """behaviour 400: other notes share some word pairs with a copied text, but no note shares half."""
    others = [
        f"{sentence}. {page(word)}" for word, sentence in zip("abcdefg", PUMP.split(". "), strict=False)
    ]
    texts = [PUMP, " ".join(reversed(PUMP.split(". "))), *others, ON_PUMPS]
    assert match_of(likeness_among(texts, 0, 1)) == "strong"
    assert likeness_among([PUMP, ON_PUMPS], 0, 1) == alike(PUMP, ON_PUMPS)


def test_joined_names_are_in_one_cluster() -> None:
    assert clusters([("c", "b"), ("x", "y"), ("b", "a"), ("d", "c"), ("a", "d")]) == [
        ["a", "b", "c", "d"],
        ["x", "y"],
    ]
    assert clusters([]) == []
    chain = [(f"{number:05}", f"{number - 1:05}") for number in range(5_000, 0, -1)]
    assert [len(group) for group in clusters(chain)] == [5_001]
