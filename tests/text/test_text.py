from __future__ import annotations

import unicodedata

import pytest
import tantivy
from hypothesis import given
from hypothesis import strategies as st

from lithos.text.words.analysis import bigrams, fold, index_text, runs, unfold_offset, unfold_offsets, words

MIXED = st.text(
    alphabet=st.one_of(
        st.sampled_from("ab Zé\u0301ßΣς日本ガｶﾞ한글ᄒ\u1161ภาษาًמ\u05b0ﬁ½İ\u200b\ufe0f.,_-\n"),
        st.characters(exclude_categories=("Cs", "Cn", "Co")),
    ),
    max_size=60,
)
ANALYZER = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(r"[\p{L}\p{N}\p{M}]+")).build()


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Café Größe", "cafe grosse"),
        ("cafe\u0301", "cafe"),
        ("ΟΔΟΣ Ὀδός", "οδοσ οδοσ"),
        ("Ёлка", "елка"),
        ("ＡＢＣ ﬁn", "abc fin"),
        ("İstanbul", "istanbul"),
        ("شَدَّة", "شده"),
        ("שָׁלוֹם", "שלום"),
        ("exam\u00adple", "example"),
        ("葛\U000e0100", "葛"),
    ],
)
def test_folding_unifies_spellings_of_a_word(text: str, folded: str) -> None:
    """behaviour 181: `cafe` and `café` have the same folded form."""
    assert fold(text) == folded


@pytest.mark.parametrize("word", ["ガギグ", "ばぱ", "한글", "हिन्दी", "ภาษาไทย", "မြန်မာ", "தமிழ்"])
def test_folding_keeps_marks_that_distinguish_words(word: str) -> None:
    assert fold(word) == word


def test_half_width_kana_fold_to_full_width() -> None:
    assert fold("ｶﾞｲﾄﾞ") == "ガイド"


@given(MIXED)
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(MIXED, st.data())
def test_position_in_folded_text_maps_to_its_original_character(text: str, data: st.DataObject) -> None:
    folded = fold(text)
    offset = data.draw(st.integers(0, len(folded)))
    position = unfold_offset(text, offset)
    assert fold(text[:position]) == folded[: len(fold(text[:position]))]
    assert len(fold(text[:position])) <= offset
    assert len(folded) == offset or position < len(text)


def test_unfolding_is_exact_in_long_text_of_any_script() -> None:
    for filler in ("e\u0301 ", "日本語", "한글", "ภาษาไทย", "ﬁ", "ｶﾞ"):
        text = filler * 3000 + "x"
        assert unfold_offset(text, fold(text).index("x")) == len(text) - 1


def test_unsegmented_run_yields_single_characters_between_pairs() -> None:
    """behaviour 180."""
    assert index_text("東京都").split() == ["東", "東京", "京", "京都", "都"]
    assert index_text("日本語Text 2本").split() == ["日", "日本", "本", "本語", "語", "text", "2", "本"]


@pytest.mark.parametrize(
    "text", ["中文搜索", "カタカナ", "ひらがな", "한국어", "ภาษาไทย", "ພາສາລາວ", "ភាសាខ្មែរ", "မြန်မာစာ"]
)
def test_every_substring_is_a_run_of_consecutive_tokens(text: str) -> None:
    """behaviour 180: substrings have two or more characters, in every unsegmented script."""
    tokens = ANALYZER.analyze(index_text(f"word {text} word"))
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            part = ANALYZER.analyze(index_text(text[start:end]))
            assert any(tokens[i : i + len(part)] == part for i in range(len(tokens)))


def test_punctuation_ends_an_unsegmented_run() -> None:
    assert index_text("東京、大阪").split() == ["東", "東京", "京", "、", "大", "大阪", "阪"]


def test_words_separated_by_spaces_are_only_folded() -> None:
    assert index_text("Hello, World_x") == "hello, world_x"
    assert index_text("Größe & Maß") == "grosse & mass"


@given(MIXED)
def test_joined_runs_equal_the_original_text(text: str) -> None:
    folded = fold(text)
    pieces = list(runs(folded))
    assert "".join(run for _, run in pieces) == folded
    assert all(pieces[i][0] != pieces[i + 1][0] for i in range(len(pieces) - 1))


@given(MIXED)
def test_words_equal_the_tokens_of_the_tokeniser_in_segmented_runs(text: str) -> None:
    expected = [
        token
        for unsegmented, run in runs(fold(text))
        for token in ([run] if unsegmented else ANALYZER.analyze(run))
    ]
    assert [word for _, word in words(fold(text))] == expected


def test_single_character_is_its_own_bigram() -> None:
    assert bigrams("東京都") == ["東京", "京都"]
    assert bigrams("東") == ["東"]


def test_tokeniser_keeps_all_unsegmented_characters() -> None:
    for code in range(0x1000, 0x32400):
        character = chr(code)
        if next(runs(character))[0] and unicodedata.category(character) != "Cn":
            assert unicodedata.category(character)[0] in "LNM", hex(code)


@given(MIXED)
def test_unfolding_many_offsets_equals_unfolding_each_offset(text: str) -> None:
    offsets = range(len(fold(text)) + 1)
    assert unfold_offsets(text, offsets) == [unfold_offset(text, offset) for offset in offsets]
