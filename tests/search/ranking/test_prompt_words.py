"""Subject words of prompts: words of a language that show no subject never count (behaviour 314)."""

from __future__ import annotations

import pytest

from lithos.search.index.stemming import make_analyzer, prepare_in, prepare_text
from lithos.search.ranking.lead_coverage import LeadText
from lithos.search.ranking.prompt_words import LEAST_SHARED, PromptWords, SubjectWords, language_of
from lithos.text.words.analysis import FUNCTION_WORDS, fold
from lithos.text.words.common_words import FUNCTION_WORDS_OF

ANALYZER = make_analyzer()


def stems(text: str) -> list[str]:
    """Return the stems of a text in the index."""
    return list(dict.fromkeys(ANALYZER.analyze(prepare_text(text))))


def stems_in(language: str, text: str) -> set[str]:
    return {*stems(text), *ANALYZER.analyze(prepare_in(language, text))}


WORDS = PromptWords(stems_in)


def subject(prompt: str) -> SubjectWords:
    return WORDS.of(prompt, [stem for stem in stems(prompt) if stem not in FUNCTION_WORDS])


@pytest.mark.parametrize(
    ("language", "prompt"),
    [
        ("de", "Wie lange dauert ein Flug nach Tokio?"),
        ("es", "¿Cuánto dura un vuelo de Berlín a Tokio?"),
        ("vi", "Tại sao bầu trời màu xanh?"),
        ("hi", "आसमान नीला क्यों है?"),
        ("en", "Why does the van den Berg script die?"),
        ("en", "Explain die casting"),
        ("en", "Quicksort"),
    ],
)
def test_language_is_that_of_most_function_words(language: str, prompt: str) -> None:
    assert language_of(fold(prompt)) == language


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("Wie lange dauert ein Flug von Berlin nach Tokio?", {"flug", "berlin", "tokio"}),
        ("¿Cuánto dura un vuelo de Berlín a Tokio?", {"dura", "vuelo", "berlin", "tokio"}),
        ("How long is the Tokio flight of Die Ente?", {"tokio", "flight", "die", "ent"}),
    ],
)
def test_words_of_the_language_that_show_nothing_are_left_out(prompt: str, words: set[str]) -> None:
    """In English, `die` is not a function word."""
    assert subject(prompt).stems == words


def test_note_needs_two_subject_words() -> None:
    """A note with one rare word of an unrelated prompt often looks near, for example with a name."""
    flight = subject("Wie lange dauert ein Flug von Berlin nach Tokio?")
    assert flight.least == LEAST_SHARED
    assert not flight.are_enough(stems("Der Flug nach Lissabon dauert lange, wie ein Flug von hier"))
    assert flight.are_enough(stems("Der Flug nach Berlin"))
    assert not subject("").are_enough(["flug"])


def test_two_syllables_of_vietnamese_are_one_word() -> None:
    poem = subject("Viết một bài thơ sinh nhật cho dì tôi.")
    assert not poem.are_enough(stems("Bữa tiệc sinh nhật ở quán trọ"))
    assert poem.are_enough(stems("bài thơ sinh nhật"))


@pytest.mark.parametrize(
    ("prompt", "one_word", "two_words"),
    [
        ("数据库备份保留多久？", "数据库很大", "数据库的备份"),
        ("ทำไมเครื่องชงกาแฟต้องล้างตะกรัน", "กาแฟ", "ล้างตะกรันในเครื่องชงกาแฟ"),
    ],
)
def test_texts_without_spaces_count_stretches_of_characters(
    prompt: str, one_word: str, two_words: str
) -> None:
    """Single pairs of characters of an unrelated note are in nearly every Thai text."""
    asked = subject(prompt)
    assert not asked.are_enough(stems(one_word))
    assert asked.are_enough(stems(two_words))


def test_function_words_interrupt_texts_without_spaces() -> None:
    assert subject("为什么这个测试失败了？").rows == (("测试", "试失", "失败"),)


def test_lists_are_folded_as_in_the_index() -> None:
    for language, text in FUNCTION_WORDS_OF.items():
        assert fold(text) == text, language


def test_note_returns_the_stems_that_it_has() -> None:
    text = LeadText.of([["flug", "berlin"], ["rest"]])
    assert text.held(["berlin", "tokio", "rest"]) == {"berlin", "rest"}
    assert text.held([]) == frozenset()
