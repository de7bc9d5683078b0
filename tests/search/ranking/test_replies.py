"""Recognition of passage ends, greetings and open questions."""

from __future__ import annotations

import pytest

from lithos.search.ranking.replies import is_greeting, wants_all
from lithos.text.excerpt_bounds import expects_more, first_block


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ann: Where did you go?", True),
        ("Steps:\n", True),
        ("**Where?**", True),
        ("Some text.\n## Results", True),
        ("All done.", False),
        ("Is it? Yes.", False),
    ],
)
def test_text_ending_in_question_colon_or_heading_expects_continuation(text: str, expected: bool) -> None:
    assert expects_more(text) is expected


def test_first_block_is_a_paragraph_cut_at_a_sentence_end() -> None:
    text = "Short reply.\n\nMore."
    assert text[: first_block(text, 0, len(text))] == "Short reply."
    long = "It is so. " * 100
    assert long[: first_block(long, 0, len(long))].endswith("so.")
    assert 0 < first_block("x" * 1_000, 0, 1_000) <= 400


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See ya!", True),
        ("Take care!", True),
        ("Mel: Hey Caroline! Good to see you!", True),
        ("**Ann:** Thanks, Bob. Talk to you soon!", True),
        ("Hi Ann, the deploy failed.", False),
        ("Thanks to the new cache it takes 3 ms.", False),
        ("...", False),
        ("", False),
    ],
)
def test_greetings_are_distinguished_from_other_lines(text: str, expected: bool) -> None:
    assert is_greeting(text) is expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who has a dog?", True),
        ("Which events did Ann attend?", True),
        ("What kinds of pets do they have?", True),
        ("List all services that use Redis", True),
        ("Where does Ann live?", False),
        ("What is the retry limit?", False),
        ("Why did it fail?", False),
    ],
)
def test_open_question_is_distinguished_from_a_factual_question(question: str, expected: bool) -> None:
    assert wants_all(question) is expected


def test_long_hostile_text_takes_linear_time() -> None:
    assert not is_greeting("hi " * 10_000 + "x")
    assert not expects_more("?" * 100_000 + "x")
