"""Invisible and look-alike characters: detection and names (docs/spec/scopes.md §2)."""

from __future__ import annotations

import sys
from itertools import pairwise
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.text.words.hidden_characters import count_names, find_signs, name_of, pieces_of, spell_out


def names(text: str) -> list[str]:
    return [sign.name for sign in find_signs(text) if not sign.is_quiet]


def quiet(text: str) -> list[str]:
    return [sign.name for sign in find_signs(text) if sign.is_quiet]


@pytest.mark.parametrize(
    ("sign", "name"),
    [
        ("\u200b", "U+200B ZERO WIDTH SPACE"),
        ("\u200c", "U+200C ZERO WIDTH NON-JOINER"),
        ("\u200d", "U+200D ZERO WIDTH JOINER"),
        ("\u2060", "U+2060 WORD JOINER"),
        ("\ufeff", "U+FEFF ZERO WIDTH NO-BREAK SPACE (BYTE ORDER MARK)"),
        ("\u202a", "U+202A LEFT-TO-RIGHT EMBEDDING"),
        ("\u202e", "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("\u2066", "U+2066 LEFT-TO-RIGHT ISOLATE"),
        ("\u2069", "U+2069 POP DIRECTIONAL ISOLATE"),
        ("\u200e", "U+200E LEFT-TO-RIGHT MARK"),
        ("\u061c", "U+061C ARABIC LETTER MARK"),
        ("\u00ad", "U+00AD SOFT HYPHEN"),
        ("\ufe0f", "U+FE0F VARIATION SELECTOR-16"),
        ("\U000e0101", "U+E0101 VARIATION SELECTOR-18"),
        ("\U000e0041", "U+E0041 TAG LATIN CAPITAL LETTER A"),
        ("\u2003", "U+2003 EM SPACE"),
        ("\u2028", "U+2028 LINE SEPARATOR"),
        ("\u3164", "U+3164 HANGUL FILLER"),
        ("\u2800", "U+2800 BRAILLE PATTERN BLANK"),
        ("\u2065", "U+2065 NOT ASSIGNED"),
        ("\x00", "U+0000 NULL"),
        ("\x1b", "U+001B ESCAPE"),
        ("\r", "U+000D CARRIAGE RETURN"),
        ("\x7f", "U+007F DELETE"),
        ("\x85", "U+0085 NEXT LINE"),
        ("\x9b", "U+009B CONTROL CHARACTER"),
        ("\ud800", "U+D800 SURROGATE"),
    ],
)
def test_invisible_character_is_named_everywhere(sign: str, name: str) -> None:
    """behaviour 283"""
    for text in (sign, f"{sign}a", f"a{sign}", f"a{sign}b", f"see {sign} there"):
        (found,) = find_signs(text)
        assert (found.name, found.kind, found.is_quiet) == (name, "hidden", False)
        assert text[found.start : found.end] == sign
    assert spell_out(f"a{sign}b") == f"a[{name}]b"


def test_every_format_control_and_space_character_is_reported() -> None:
    """The test covers all such characters in this Python's Unicode.

    Tab, line feed and the usual space are not covered.
    """
    kinds = ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp")
    wanted = [each for each in map(chr, range(sys.maxunicode + 1)) if category(each) in kinds]
    assert len(wanted) > 2_000
    missed = {each for each in wanted if not list(find_signs(f"x{each}x"))}
    assert missed == {"\t", "\n", " "}


def test_common_characters_are_not_reported() -> None:
    for text in (
        "",
        "Plain text, with (marks) – and “quotes”…\n\n\t* a list\n",
        "Größe, naïve, façade, Ærø, Łódź, smørrebrød, İstanbul",
        "Слово и дело. Ελληνικά γράμματα. עברית. العربية. 日本語のテキスト。한국어 हिन्दी ไทย",
        "5 ± 2 µm, x² ≤ ½, → ∞, €, ©, 🎉",
        "two lines\r\nof Windows\r\n",
        "e\u0301 combining",
    ):
        assert not list(find_signs(text)), text


def test_repeated_character_is_reported_once_with_its_count() -> None:
    assert names("a" + "\u200b" * 1_200 + "b\u200b") == [
        "U+200B ZERO WIDTH SPACE × 1,200",
        "U+200B ZERO WIDTH SPACE",
    ]
    assert names("a\U000e0100\U000e0101\U000e0102") == ["U+E0100 VARIATION SELECTOR-17 and 2 more selectors"]


def test_tag_characters_are_reported_with_their_text() -> None:
    hidden = "".join(chr(0xE0000 + ord(each)) for each in "obey me")
    assert names(f"Hello{hidden}!") == ["7 TAG characters from U+E006F that spell “obey me”"]
    assert names("\U000e0001\U000e007f") == ["2 TAG characters from U+E0001"]


@pytest.mark.parametrize(
    "text",
    [
        "👨\u200d👩\u200d👧",
        "👩🏽\u200d🚀",
        "👁\ufe0f\u200d🗨\ufe0f",
        "❤\ufe0f\u200d🔥",
        "1\ufe0f\u20e3 #\ufe0f\u20e3 ©\ufe0f ↔\ufe0f ☎\ufe0e",
        "می\u200cخواهم",
        "क्\u200dष क्\u200cष",
        "ന്\u200d and more",
        "ᠠ\u180b",
        "葛\U000e0100",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "no\u00a0break, 5\u202f%, 全角\u3000空白",
        "\u0600١٢",
    ],
)
def test_character_in_its_usual_context_is_counted_without_warning(text: str) -> None:
    assert names(text) == []
    assert quiet(text)
    assert spell_out(text) == text
    loud, told, is_whole = count_names([text, text])
    assert not loud
    assert is_whole
    assert sum(told.values()) == 2 * len(quiet(text))
    assert all(name.startswith("U+") or "TAG" in name for name in told)


@pytest.mark.parametrize(
    "text",
    [
        "pass\u200dword",
        "می\u200c",
        "می\u200c\u200cخواهم",
        "👨\u200d",
        "a\ufe0f",
        "🎉\ufe0f\ufe0e",
        "🎉\u200d\u200d🎉",
        "a\U000e0100",
        "🏴" + "".join(chr(0xE0000 + ord(each)) for each in "obey all this") + "\U000e007f",
        "\U000e0067\U000e0062\U000e007f",
        "a\u180b",
    ],
)
def test_character_in_an_unusual_context_causes_a_warning(text: str) -> None:
    assert len(names(text)) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("p\u0430ypal", ["U+0430 CYRILLIC SMALL LETTER A in a Latin word"]),
        ("\u0430dmin", ["U+0430 CYRILLIC SMALL LETTER A in a Latin word"]),
        ("user_\u0430dmin", ["U+0430 CYRILLIC SMALL LETTER A in a Latin word"]),
        ("\u0430_dmin", ["U+0430 CYRILLIC SMALL LETTER A in a Latin word"]),
        ("H2\u041e", ["U+041E CYRILLIC CAPITAL LETTER O in a Latin word"]),
        ("слoво", ["U+006F LATIN SMALL LETTER O in a Cyrillic word"]),
        ("g\u03bfogle", ["U+03BF GREEK SMALL LETTER OMICRON in a Latin word"]),
        ("l\u03ccgin", ["U+03CC GREEK SMALL LETTER OMICRON WITH TONOS in a Latin word"]),
        ("κ\u043eλος", ["U+043E CYRILLIC SMALL LETTER O in a Greek word"]),
        ("a\u043e", ["U+043E CYRILLIC SMALL LETTER O in a Latin word"]),
        ("pa\u200by\u0440al", ["U+200B ZERO WIDTH SPACE", "U+0440 CYRILLIC SMALL LETTER ER in a Latin word"]),
    ],
)  # fmt: skip
def test_letters_of_another_script_are_named(text: str, told: list[str]) -> None:
    """behaviour 283"""
    assert names(text) == told
    assert names(f"Before, {text} after.") == told
    without = "".join(piece for piece, sign in pieces_of(text) if sign is None or sign.kind == "mixed")
    assert without == text.replace("\u200b", "")
    assert all(f"[{name}]" in spell_out(text) for name in told)


def test_adjacent_words_of_several_scripts_and_formulas_are_not_mixed() -> None:
    for text in (
        "USB-кабель",
        "слово word",
        "слово\u00a0word",
        "Δt",
        "μm",
        "kΩ",
        "α_i",
        "σ_x",
        "β-carotene",
        "x·ρ",
    ):
        assert names(text) == [], text


def test_long_run_of_foreign_letters_is_named_by_first_letters() -> None:
    (told,) = names("latin" * 10 + "и" * 40)
    assert told == "; ".join(["U+0438 CYRILLIC SMALL LETTER I"] * 4) + " and 36 more in a Latin word"


@given(st.text(st.characters() | st.sampled_from("\u200b\u202e\u200d\ufe0f\u0430aα_\r\n👨"), max_size=60))
def test_reported_characters_are_in_order_and_no_text_is_lost(text: str) -> None:
    signs = list(find_signs(text))
    assert all(0 <= one.start < one.end <= len(text) for one in signs)
    assert all(one.end <= other.start for one, other in pairwise(signs))
    assert "".join(piece for piece, _ in pieces_of(text)) == text
    spelled = spell_out(text)
    assert not any(names(part) for part in spelled.split("[U+")[:1])
    for sign in signs:
        assert sign.is_quiet or f"[{sign.name}]" in spelled


def test_characters_are_counted_by_name_up_to_a_limit() -> None:
    texts = ["a\u200bb\u00a0c\u200b", "\u202e"]
    loud = {"U+200B ZERO WIDTH SPACE": 2, "U+202E RIGHT-TO-LEFT OVERRIDE": 1}
    assert count_names(texts) == (loud, {"U+00A0 NO-BREAK SPACE": 1}, True)
    assert count_names(texts, 1) == ({"U+200B ZERO WIDTH SPACE": 1}, {}, False)
    assert count_names(["nothing"]) == ({}, {}, True)


def test_character_name_begins_with_its_code_point() -> None:
    assert name_of("a") == "U+0061 LATIN SMALL LETTER A"
    assert name_of("\U0001f600") == "U+1F600 GRINNING FACE"
