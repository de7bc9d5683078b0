"""Large texts are cut only at positions that no match spans."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.text import pieces

SPACE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])\s*")
PARAGRAPHS = re.compile(r"\n(?:[^\S\n]*\n)+")
HEADING = re.compile(r"^#{1,6}(?:[ \t][^\n]*)?$", re.MULTILINE)
LINK = re.compile(r"\[\[([^\[\]|]+)(?:\|([^\[\]]*))?\]\]")


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", 7)


def spans(matches) -> list[tuple[int, int]]:
    return [match.span() for match in matches]


def parts(separators: list[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    position, found = 0, []
    for start, end in separators:
        if start > position:
            found.append((position, start))
        position = end
    return [*found, (position, length)] if position < length else found


@given(st.text("a. 。\n\t", max_size=80))
def test_same_separators_are_found_in_pieces_and_whole_text(text: str) -> None:
    for pattern in (SPACE, PARAGRAPHS, re.compile(r"\s+")):
        whole = spans(pattern.finditer(text))
        cut = spans(pieces.matches_of_space(pattern, text, 0, len(text)))
        assert parts(cut, len(text)) == parts(whole, len(text))


@given(st.text("#a \n", max_size=80), st.integers(0, 20))
def test_same_headings_are_found_in_pieces_and_whole_text(text: str, start: int) -> None:
    assert spans(pieces.matches_in_lines(HEADING, text, start)) == spans(HEADING.finditer(text, start))


@given(st.text("[]|a\n", max_size=80))
def test_same_links_are_found_in_pieces_and_whole_text(text: str) -> None:
    assert spans(pieces.matches_of_brackets(LINK, text)) == spans(LINK.finditer(text))


@given(st.text("a ", max_size=80))
def test_text_is_cut_at_spaces_or_inside_long_words(text: str) -> None:
    cut = list(pieces.cut_at_spaces(text))
    assert "".join(cut) == text
    assert max(map(len, cut)) <= 7
    for before, after in pairwise(cut):
        assert after.startswith(" ") or len(before) == 7
