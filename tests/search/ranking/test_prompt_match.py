"""Match strength for prompts: which parts are ranked, and when a note matches."""

from __future__ import annotations

import pytest

from lithos.search.ranking.match_strength import Features, probability
from lithos.search.ranking.prompt_match import (
    LONGEST_PART,
    MOST_PARTS,
    MOST_RANKED,
    PROMPT_CALIBRATIONS,
    best_parts,
    parts_of,
)

#: Features of a note about the subject of a prompt.
NEAR = Features(cosine=0.62, above=2.1, margin=0.3, held=0.2, missing=1.0)


def test_parts_are_the_whole_prompt_and_its_sentences() -> None:
    assert parts_of("I am back. Why did we\nchoose Kafka?\n\nThen go on") == [
        "I am back. Why did we choose Kafka? Then go on",
        "I am back.",
        "Why did we choose Kafka?",
        "Then go on",
    ]
    assert parts_of("Where is it?") == ["Where is it?"]
    assert parts_of("备份保留多久？在哪里？") == ["备份保留多久？在哪里？", "备份保留多久？", "在哪里？"]
    assert parts_of("يبقى باردا؟ لماذا") == ["يبقى باردا؟ لماذا", "يبقى باردا؟", "لماذا"]
    assert parts_of("यह कब है? हाँ। क्यों")[1:] == ["यह कब है?", "हाँ।", "क्यों"]
    assert parts_of("Πού είναι; Πες μου.")[1:] == ["Πού είναι;", "Πες μου."]
    assert parts_of("first; second") == ["first; second"]
    assert parts_of(" \n ") == []


def test_parts_of_long_prompts_are_bounded() -> None:
    parts = parts_of("word " * 10_000 + ". " + "Is it so? " * 900)
    assert (len(parts) <= MOST_PARTS, max(map(len, parts)) <= LONGEST_PART) == (True, True)


def test_parts_with_most_known_words_are_ranked() -> None:
    """A part without two known words can never be strong, so it is not ranked."""
    unknown = 5.0
    idfs = [{"a": 2.0, "b": 2.0}, {"a": 2.0, "x": unknown}, {}, {"a": 2.0, "b": 2.0, "c": 1.0}]
    assert best_parts(idfs, unknown) == [0, 3]
    many = [{"a": 1.0, "b": 1.0 + number} for number in range(20)]
    assert best_parts(many, 100.0) == list(range(20 - MOST_RANKED, 20))


@pytest.mark.parametrize("tier", ["static", "accurate"])
def test_every_margin_raises_the_chance(tier: str) -> None:
    rule = PROMPT_CALIBRATIONS[tier]
    assert all(weight >= 0 for weight in rule.weights.values())
    far = Features(cosine=0.1, above=0.0, margin=0.1, held=-1.0, missing=1.0)
    assert probability(far, rule) < rule.threshold / 5 < rule.threshold < probability(NEAR, rule)


def test_words_that_a_note_lacks_do_not_count() -> None:
    """A long prompt always has many of them."""
    assert all("missing" not in rule.weights for rule in PROMPT_CALIBRATIONS.values())
