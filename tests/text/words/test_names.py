"""Recognition of possible note names in a question."""

from __future__ import annotations

from lithos.text.words.names import LONGEST_NAME, MOST_WORDS, name_spans


def names_in(text: str) -> list[str]:
    lowered, spans = name_spans(text)
    return [lowered[start:end] for start, end in spans]


def test_runs_of_words_are_possible_names_longest_first() -> None:
    runs = ["how to templater", "how to", "to templater", "how", "to", "templater"]
    assert names_in("How to Templater?") == runs


def test_punctuation_is_removed_around_words_but_kept_within_words() -> None:
    assert names_in('"obsidian-git", (C++)') == ["obsidian-git c++", "obsidian-git", "c++"]


def test_long_question_has_no_names_and_names_are_short() -> None:
    assert names_in("word " * (MOST_WORDS + 1)) == []
    assert max(len(name.split()) for name in names_in("word " * MOST_WORDS)) == LONGEST_NAME
    assert names_in("?!") == []
