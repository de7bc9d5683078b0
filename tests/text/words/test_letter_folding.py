"""Letter folding: spellings that are equal in a search, although Unicode normal forms keep them apart."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from lithos.text.words.analysis import fold
from lithos.text.words.letter_folding import LETTERS

#: Pairs of words: the spelling in a note, and the spelling that people type.
MEET = [
    ("Straße", "STRASSE"), ("GROẞ", "gross"), ("Søren", "soren"), ("Ærø", "Aero"), ("Łódź", "lodz"),
    ("œuvre", "oeuvre"), ("Đặng", "dang"), ("Ísafjörður þing", "isafjordur thing"), ("Iğdır", "igdir"),
    ("İzmir", "izmir"), ("ISPARTA", "ısparta"), ("Ħal", "hal"), ("Ŋa", "na"), ("Əliyev", "eliyev"),
    ("Ǿ", "o"), ("Ƙ", "k"), ("ĳs", "ijs"), ("ﬁn eﬄuent", "fin effluent"), ("ſtill", "still"),
    ("ＷＯＲＫ １２", "work 12"), ("x²", "x2"), ("ꜱᴍᴀʟʟ", "small"), ("№ ㎏", "no kg"), ("ǆ", "dz"),
    ("ґрунт", "грунт"), ("қазақ", "казак"), ("ёлка", "елка"), ("п\u02bcять", "п'ять"),
    ("Hawai\u02bbi", "hawaii"),
    ("ΣΊΣΥΦΟΣ", "σισυφοσ"), ("ᾳ", "α"),
    ("الشـــارع", "الشارع"), ("کتابخانه", "كتابخانه"), ("أحمد إلى آدم ٱلله", "احمد الى ادم الله"),
    ("على", "علي"), ("علی", "علي"), ("مدرسة", "مدرسه"), ("مُحَمَّد", "محمد"), ("ﻣﺤﻤﺪ", "محمد"), ("مؤمن", "مومن"),
    ("سائل", "سايل"), ("ہے", "هي"), ("١٢٣ ۴۵", "123 45"),
    ("שָׁלוֹם", "שלום"), ("ײִדיש", "יידיש"), ("שׂ", "ש"),
    ("ｶﾞｷﾞｸﾞ", "ガギグ"), ("ﾊﾟﾝ", "パン"), ("क़लम", "कलम"), ("हँस", "हंस"), ("അവൻ", "അവന്\u200d"), ("१२", "12"),
    ("๑๒", "12"), ("한글", "한글"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "typed"), MEET)
def test_spellings_of_a_word_fold_to_the_same_text(written: str, typed: str) -> None:
    """behaviour 378"""
    assert fold(written) == fold(typed) == fold(fold(written))
    assert fold(unicodedata.normalize("NFD", written)) == fold(written)


@pytest.mark.parametrize(
    ("one", "other"),
    [("か", "が"), ("ハ", "バ"), ("כ", "ב"), ("ب", "پ"), ("ш", "щ"), ("कि", "का"), ("ø", "e")],
)
def test_letters_that_distinguish_words_stay_different(one: str, other: str) -> None:
    assert fold(one) != fold(other)


def test_folding_once_is_enough_for_every_character() -> None:
    """behaviour 378"""
    wrong = [
        character
        for code in range(sys.maxunicode + 1)
        if not 0xD800 <= code < 0xE000 and fold(fold(character := chr(code))) != fold(character)
    ]
    assert wrong == []


def test_every_letter_of_the_table_is_replaced_in_one_step() -> None:
    assert not set("".join(LETTERS.values())) & set(LETTERS)
    assert all(unicodedata.normalize("NFD", letter) == letter for letter in LETTERS)
