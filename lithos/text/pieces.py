"""Large texts in pieces, so that no single call keeps the interpreter lock (GIL) for long.

A regular expression, `str.translate` or `str.split` holds the interpreter lock until it returns: ten
megabytes take a second, during which the event loop serves no caller. Between two calls Python releases the
lock. The functions of this module find places where a text can be cut without changing the matches in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

#: Characters for one call: about a millisecond.
PIECE: Final = 65_536

_SPACE: Final = re.compile(r"\s*")
_OPENING: Final = "[["


def matches_of_space(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """`pattern.finditer(text, start, end)` for a pattern that matches white space only, or nothing.

    An empty match at the end of a piece is found there a second time.
    """
    while start < end:
        space = _SPACE.match(text, start + PIECE, end)
        stop = space.end() if space else end
        yield from pattern.finditer(text, start, stop)
        start = stop


def matches_in_lines(pattern: re.Pattern[str], text: str, start: int) -> Iterator[re.Match[str]]:
    """`pattern.finditer(text, start)` for a pattern that matches within a line, from its beginning on."""
    while start < len(text):
        if len(text) - start <= PIECE:
            yield from pattern.finditer(text, start)
            return
        stop = text.rfind("\n", start, start + PIECE) + 1
        if stop:
            yield from pattern.finditer(text, start, stop)
        else:
            stop = text.find("\n", start + PIECE) + 1 or len(text)
            if match := pattern.match(text, start):
                yield match
        start = stop


def line_pieces(text: str, start: int, end: int, *, keeps: str) -> Iterator[tuple[int, int]]:
    """Yield where pieces of `text[start:end]` begin and end: behind paragraphs, or else lines.

    A longer line is cut at a space, or anywhere; a run of the character `keeps` stays whole.
    """
    while end - start > PIECE:
        stop = start + PIECE
        found = (text.rfind(mark, start, stop) + len(mark) for mark in ("\n\n", "\n", " "))
        stop = next((each for each in found if each > start + 1), stop)
        while keeps and stop < end and text[stop] == keeps:
            stop += 1
        yield start, stop
        start = stop
    if start < end:
        yield start, end


def matches_of_brackets(
    pattern: re.Pattern[str], text: str, opening: str = _OPENING
) -> Iterator[re.Match[str]]:
    """`pattern.finditer(text)` for a pattern that begins with `opening` and has no other one inside."""
    start = 0
    while len(text) - start > PIECE:
        stop = start + PIECE
        # The last one may end behind the piece; one more character, as its brackets may be on both sides.
        last = text.rfind(opening, start, stop + 1)
        if last > start:
            yield from pattern.finditer(text, start, last)
            start = last
        elif last < 0:
            start = stop
        elif match := pattern.match(text, start):
            yield match
            start = match.end()
        else:
            start += 1
    yield from pattern.finditer(text, start)


def pieces_of_lines(text: str) -> Iterator[str]:
    """Yield the text in pieces that end with a line; a longer line is cut."""
    start = 0
    while len(text) - start > PIECE:
        stop = text.rfind("\n", start, start + PIECE) + 1 or start + PIECE
        yield text[start:stop]
        start = stop
    yield text[start:]


def cut_at_spaces(text: str) -> Iterator[str]:
    """Yield the text in pieces that end before a space; a word of more than `PIECE` characters is cut."""
    start = 0
    while len(text) - start > PIECE:
        stop = text.rfind(" ", start + 1, start + PIECE)
        stop = stop if stop > 0 else start + PIECE
        yield text[start:stop]
        start = stop
    yield text[start:]
