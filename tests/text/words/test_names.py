"""The names that may stand in a question."""

from __future__ import annotations

from lithos.text.words.names import LONGEST_NAME, MOST_WORDS, name_spans


def names_in(text: str) -> list[str]:
    lowered, spans = name_spans(text)
    return [lowered[start:end] for start, end in spans]


def test_every_run_of_words_may_be_a_name_and_longer_ones_come_first() -> None:
    runs = ["how to templater", "how to", "to templater", "how", "to", "templater"]
    assert names_in("How to Templater?") == runs


def test_signs_around_words_are_no_part_of_them_and_signs_within_are() -> None:
    assert names_in('"obsidian-git", (C++)') == ["obsidian-git c++", "obsidian-git", "c++"]


def test_a_long_question_names_nothing_and_a_name_has_at_most_five_words() -> None:
    assert names_in("word " * (MOST_WORDS + 1)) == []
    assert max(len(name.split()) for name in names_in("word " * MOST_WORDS)) == LONGEST_NAME
    assert names_in("?!") == []
