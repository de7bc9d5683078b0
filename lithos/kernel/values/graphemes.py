"""Cuts between graphemes: a letter with its marks, an emoji of several parts or a flag is never divided.

A grapheme is an extended grapheme cluster (UAX #29). Every cut of a text that a person or an agent sees uses
these functions.
"""

from __future__ import annotations

from typing import Final

#: Maximum length of a grapheme in characters. A longer one, such as a letter with 100 marks, may be cut.
LONGEST: Final = 64
#: Maximum number of characters that are examined before a position among flags, which are pairs of letters.
_FLAGS: Final = 2_048
#: No character below this one continues a grapheme, except a line feed after a carriage return.
_FIRST_MARK: Final = "\u0300"
_FLAG_LETTERS: Final = "".join(map(chr, range(0x1F1E6, 0x1F200)))


def whole(text: str, at: int, least: int = 0) -> int:
    """Return the last position up to `at` that is not inside a grapheme.

    `least` is a position between graphemes, such as the beginning of the part to cut. If the grapheme at
    `least` reaches beyond `at`, the result is `at`, so that a caller that continues there makes progress.
    """
    if at <= least or at >= len(text):
        return at
    if text[at] < _FIRST_MARK and text[at - 1] < _FIRST_MARK:
        is_inside = text[at] == "\n" and text[at - 1] == "\r"
        return at - 1 if is_inside and at - 1 > least else at
    return _last_break(text, at, least)


def beginning(text: str, most: int) -> str:
    """Return at most the first `most` characters of a text, without a part of a grapheme at the end."""
    return text[: whole(text, most)]


def tail(text: str, most: int) -> str:
    """Return at most the last `most` characters of a text, without a part of a grapheme at the beginning."""
    at = max(0, len(text) - most)
    begin = whole(text, at)
    return text[begin + len(_first_grapheme(text, begin)) :] if begin < at else text[at:]


def _first_grapheme(text: str, at: int) -> str:
    from apsw.unicode import grapheme_next_break  # noqa: PLC0415

    part = text[at : at + LONGEST]
    return part[: grapheme_next_break(part, 0)]


def _last_break(text: str, at: int, least: int) -> int:
    # Not imported before it is needed: hooks start quickly, and most texts have no such characters.
    from apsw.unicode import grapheme_next_break  # noqa: PLC0415

    start = max(least, at - LONGEST)
    before = text[max(least, start - _FLAGS) : start]
    if text[start] in _FLAG_LETTERS and (len(before) - len(before.rstrip(_FLAG_LETTERS))) % 2:
        start -= 1
    # The window may begin inside a grapheme. The breaks after the end of that grapheme are right.
    window = text[start : at + 1]
    place, found, end = 0, 0, at - start
    while place < end:
        found, place = place, grapheme_next_break(window, place)
    found = place if place == end else found
    return start + found if found else at
