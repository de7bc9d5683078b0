"""Markdown details: tags, titles and the masking of code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.kernel.values.limits import ITEMS
from lithos.text.markdown import CODE_MARK, has_conflict_markers, mask_code, plain_title, scan_tags
from lithos.text.pieces import PIECE, line_pieces

marked = st.text(alphabet="ab `~\n*_[]()#|!/\\=>-1é")


def visible(text: str) -> str:
    """Return the text that remains when code is masked, without the mask characters."""
    return mask_code(text).replace(CODE_MARK, "")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("no code", "no code"),
        ("a `b` c", "a  c"),
        ("a ``b ` c`` d", "a  d"),
        ("a `b\nc` d", "a  d"),
        ("a `b\n\nc` d", "a b\n\nc d"),
        ("an odd ` alone", "an odd  alone"),
        ("escaped \\`b` c", "escaped \\b c"),
        ("``` x\nin\n```\nout", "\nout"),
        ("~~~\nin\n```\nin\n~~~~\nout", "\nout"),
        ("````\nin\n```\nin\n````\nout", "\nout"),
        ("- ```\n  in\n  ```\nout", "\nout"),
        ("> ```\n> in\n> ```\nout", "\nout"),
        ("```\nnever closed", ""),
        ("```js``` inline", " inline"),
        ("```\r\nin\r\n```\r\nout", "\nout"),
    ],
)
def test_markdown_code_is_masked(text: str, left: str) -> None:
    assert visible(text) == left


@given(marked)
def test_code_masking_keeps_every_text_position(text: str) -> None:
    masked = mask_code(text)
    assert len(masked) == len(text)
    assert all(new in (old, CODE_MARK) for old, new in zip(text, masked, strict=True))


@pytest.mark.parametrize("filler", ["word ", "x", "line\n", "`c` ", "para\n\n"])
def test_code_beyond_the_first_piece_is_masked(filler: str) -> None:
    text = filler * (2 * PIECE // len(filler)) + "\n\n`code` #tag\n\n```\nfenced #no\n```\n #last"
    assert visible(text).endswith(" #tag\n\n\n #last")
    assert scan_tags(text) == ("tag", "last")


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("#one #two", ("one", "two")),
        ("#one #one", ("one",)),
        ("#a/b/c #a/ #-x #_y #1a", ("a/b/c", "a", "-x", "_y", "1a")),
        ("#1984 #٣ #", ()),
        ("(#in) a,#b |#c| *#d*", ("in", "b", "c")),
        ("x#no http://h/#no http://h/p(#no) &#38;", ()),
        ("# Title #no\n## Sub #no\n#yes", ("yes",)),
        ("`#no` [#no](a.md) [a](#no) [[b #no]] <a href='x' b=' #no'>", ()),
        ("#tag, #other. #third!", ("tag", "other", "third")),
        ("#été #日本 #हिन्दी #naïve", ("été", "日本", "हिन्दी", "naïve")),
        ("text\r\n#crlf\r\n", ("crlf",)),
        ("#fff #FFF #a1b2c3 #f0f #12ab56ff #ffeedd #dddddd #0af8", ()),
        ("#face #bed #decade #facade #DEAD", ("face", "bed", "decade", "facade", "DEAD")),
        ("#e2e #b2b #2fa #B2C", ("e2e", "b2b", "2fa", "B2C")),
        ("#a1b2c #fff/x #face-off #1a2b3c4 #ffg", ("a1b2c", "fff/x", "face-off", "1a2b3c4", "ffg")),
    ],
)
def test_tags_follow_the_rules_of_obsidian(text: str, tags: tuple[str, ...]) -> None:
    assert scan_tags(text) == tags


@pytest.mark.parametrize("around", ["", "# Title\n", "`#` ## a # b\n", "[[#]] "])
def test_hash_without_a_following_tag_character_is_not_a_tag(around: str) -> None:
    assert scan_tags(around) == ()
    assert scan_tags(around + " #\u0301x #é") == ("\u0301x", "é")


def test_number_of_tags_is_limited() -> None:
    assert len(scan_tags(" ".join(f"#t{number}" for number in range(ITEMS + 10)))) == ITEMS


@given(marked)
def test_every_tag_occurs_in_the_text_after_a_hash(text: str) -> None:
    for tag in scan_tags(text):
        assert f"#{tag}" in text
        assert not tag.isdigit()


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("Plain", "Plain"),
        ("[[dataview|Dataview]]", "Dataview"),
        ("[[Note]] and ![[folder/Other|x]]", "Note and x"),
        ("a [text](http://x.y/z_(w)) b", "a text b"),
        ("![logo](l.png) Name", "logo Name"),
        ("[![badge](b.svg)](u) Name", "badge Name"),
        ("**Bold** *it* _it_ ~~no~~ ==mark== ***both***", "Bold it it no mark both"),
        ("`code` of ``two``", "code of two"),
        ("snake_case_name and __init__", "snake_case_name and __init__"),
        ("2 * 3 * 4 and *args, **kwargs", "2 * 3 * 4 and *args, **kwargs"),
        ("arr[[0]]", "arr[[0]]"),
        ("****", "****"),
        ("C:\\*x*", "C:\\*x*"),
    ],
)
def test_plain_title_has_no_markup(written: str, title: str) -> None:
    assert plain_title(written) == title


@given(marked)
def test_stripping_a_title_twice_changes_nothing(text: str) -> None:
    assert plain_title(plain_title(text)) == plain_title(text)


CONFLICT = "<<<<<<< HEAD\nours\n=======\ntheirs\n>>>>>>> other\n"


@pytest.mark.parametrize(
    ("text", "is_marked"),
    [
        (CONFLICT, True),
        (f"Before.\n\n{CONFLICT}After.", True),
        (CONFLICT.replace("\n", "\r\n"), True),
        ("<<<<<<<\na\n>>>>>>>", True),
        ("```\n" + CONFLICT + "```\n\n" + CONFLICT, True),
        (CONFLICT + "```\ncode\n```", True),
        ("~~~\na\n~~~\n\n<<<<<<<\n```\nb\n```\n>>>>>>>", True),
        ("```\n" + CONFLICT + "```\n", False),
        ("```diff\n" + CONFLICT, False),
        ("<<<<<<< HEAD\n```\n>>>>>>> other\n```\n", False),
        (">>>>>>> other\n<<<<<<< HEAD\n", False),
        ("A line with <<<<<<< HEAD\nand >>>>>>> other in it", False),
        ("<<<<<<<<<<<<<<\na\n>>>>>>>>>>>>>>", False),
        ("<<<<<<<HEAD\na\n>>>>>>>other", False),
        ("> <<<<<<< HEAD\n> >>>>>>> other", False),
        ("", False),
    ],
)
def test_conflict_markers_are_whole_lines_outside_fences(text: str, is_marked: bool) -> None:
    """behaviour 286"""
    assert has_conflict_markers(text) is is_marked
    assert has_conflict_markers("Words.\n" * 20_000 + "\n" + text) is is_marked


@given(st.text(alphabet="a \n`", max_size=40), st.integers(0, 30))
def test_joined_pieces_equal_the_original_text(text: str, repeat: int) -> None:
    long = text * (repeat * 400)
    pieces = list(line_pieces(long, 0, len(long), keeps="`"))
    assert "".join(long[start:stop] for start, stop in pieces) == long
    assert all(start < stop for start, stop in pieces)
