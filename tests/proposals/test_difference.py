"""Differences that a person approves: marked words, named characters, and limits (behaviour 283)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.proposals import pages_difference as difference
from lithos.proposals.pages_difference import TextComparison, compare, name_all
from lithos.text.words.hidden_characters import find_signs
from tests.server.console.injections import PAYLOADS
from tests.server.console.pages import dangers, parse


def shown(compared: TextComparison) -> list[str]:
    signs = {"same": " ", "added": "+", "removed": "-", "place": "@", "remark": "\\"}
    return [f"{signs[line.kind]}{line.html}" for line in compared.lines]


def test_changed_lines_and_words_are_marked() -> None:
    old = "".join(f"line {number}\n" for number in range(20)) + "The plan is good.\nEnd.\n"
    new = old.replace("plan is good", "plan is very good").replace("line 3\n", "")
    compared = compare(old, new)
    assert (compared.added, compared.removed, compared.left) == (1, 2, 0)
    assert shown(compared) == [
        " line 0", " line 1", " line 2", "-line 3", " line 4", " line 5", " line 6",
        "@line 17", " line 17", " line 18", " line 19", "-The plan is good.",
        "+The plan is <strong>very</strong> good.", " End.",
    ]  # fmt: skip


def test_new_and_deleted_texts_are_completely_added_or_removed() -> None:
    assert shown(compare(None, "a\nb")) == ["+a", "+b", "\\no line break at the end of the file"]
    assert shown(compare("a\n", None)) == ["-a"]
    assert shown(compare("a\n", "a\n")) == shown(compare(None, None)) == shown(compare(None, "")) == []


def test_special_characters_are_named_and_counted_in_added_text() -> None:
    """behaviour 283"""
    compared = compare(
        "old \u202eline\nsame\u200b\nthe price is 10\n",
        "same\u200b\nthe price\u2066 is 10\nask \u0440aypal about it\nno\u00a0break\n",
    )
    assert shown(compared) == [
        "-old <bdi class=sign>U+202E RIGHT-TO-LEFT OVERRIDE</bdi>line",
        " same<bdi class=sign>U+200B ZERO WIDTH SPACE</bdi>",
        "-the price is 10",
        "+the price<strong><bdi class=sign>U+2066 LEFT-TO-RIGHT ISOLATE</bdi></strong> is 10",
        "+ask <bdi class=odd>\u0440</bdi>"
        "<bdi class=sign>U+0440 CYRILLIC SMALL LETTER ER in a Latin word</bdi>aypal about it",
        "+no\u00a0break",
    ]
    assert compared.signs == {
        "U+2066 LEFT-TO-RIGHT ISOLATE": 1, "U+0440 CYRILLIC SMALL LETTER ER in a Latin word": 1,
    }  # fmt: skip
    assert compared.quiet == {"U+00A0 NO-BREAK SPACE": 1}
    assert not compared.has_more


def test_windows_line_breaks_are_shown_only_where_they_change() -> None:
    assert shown(compare("a\r\nb\r\n", "a\r\nc\r\n")) == [" a", "-b", "+c"]
    assert shown(compare(None, "a\r\n")) == ["+a"]
    changed = shown(compare("a line\r\n", "a line\n"))
    assert changed == ["-a line<strong><bdi class=sign>U+000D CARRIAGE RETURN</bdi></strong>", "+a line"]


def test_long_difference_shows_its_beginning_and_counts_other_lines() -> None:
    many = "".join(f"{number}\n" for number in range(5_000))
    compared = compare(None, many)
    assert (len(compared.lines), compared.left, compared.added) == (difference.MOST_LINES, 3_000, 5_000)
    compared = compare(many, many.replace("\n", " x\n"), most=10)
    assert (len(compared.lines), compared.left) == (10, 9_990)
    compared = compare("0\n" * 9 + "a\n" + "1\n" * 9, "0\n" * 9 + "b\n" + "1\n" * 9, most=3)
    assert [line.kind for line in compared.lines] == ["place", "same", "same", "same"]
    assert compared.left == 5
    wide = "".join(f"{number} {'w' * 900}\n" for number in range(1_000))
    compared = compare(None, wide)
    assert sum(len(line.html) for line in compared.lines) <= difference.MOST_CHARACTERS
    assert compared.left == 1_000 - len(compared.lines) > 500


def test_special_characters_in_hidden_lines_are_counted() -> None:
    """Lines that a person does not see must not contain unreported special characters."""
    compared = compare(None, "a\n" * 100 + "b\u202e\n", most=5)
    assert compared.signs == {"U+202E RIGHT-TO-LEFT OVERRIDE": 1}


def test_long_line_is_shown_around_its_first_change() -> None:
    (removed, added) = compare("w " * 5_000 + "old\n", "w " * 5_000 + "new" + " w" * 5_000 + "\n").lines
    assert removed.html.startswith("<i>9,940 characters …</i>w w ")
    assert removed.html.endswith("w <strong>old</strong>")
    assert "w <strong>new" in added.html
    assert added.html.endswith(" characters more</i>")


@pytest.mark.parametrize("text", ["a\u200b" * 300_000, "p\u0430" * 300_000, "word\u202e x\n" * 60_000])
def test_long_text_of_special_characters_is_shown_in_part(text: str) -> None:
    compared = compare(None, text)
    assert sum(len(line.html) for line in compared.lines) <= difference.MOST_CHARACTERS
    assert compared.has_more
    assert "U+" in compared.lines[0].html


def test_markup_in_a_text_has_no_effect_on_the_page() -> None:
    for payload in PAYLOADS:
        for compared in (
            compare(None, payload),
            compare(payload, f"x{payload}y\n{payload}"),
            compare(payload, None),
        ):
            page = parse("\n".join(f"<ins>{line.html}</ins>" for line in compared.lines))
            assert {each.tag for each in page.walk()} <= {"", "ins", "bdi", "strong", "i"}, payload
            assert dangers(page) == []
    page = parse(str(name_all("<script>pwned()</script>\u202e.md")))
    assert [each.tag for each in page.walk()] == ["", "bdi", "bdi"]
    assert page.text == "<script>pwned()</script>U+202E RIGHT-TO-LEFT OVERRIDE.md"


texts = st.text(st.sampled_from("ab <&\n\u200b\u202e\u0430\r"), max_size=40)


@given(texts, texts)
def test_every_line_is_shown_with_its_hidden_characters_named(old: str, new: str) -> None:
    compared = compare(old, new)
    assert compared.left == 0
    for line in compared.lines:
        assert not any(sign.kind == "hidden" for sign in find_signs(line.html.striptags()))
    added = [line for line in compared.lines if line.kind == "added"]
    assert len(added) == compared.added
    assert len([line for line in compared.lines if line.kind == "removed"]) == compared.removed
    assert sum(line.html.count("class=sign>") for line in added) == sum(compared.signs.values())
