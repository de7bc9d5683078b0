"""Splitting of large texts into pieces, so that no call holds the interpreter lock (GIL) for long.

A regular expression, `str.translate` or `str.split` holds the interpreter lock until it returns. Ten
megabytes take a second, during which the event loop serves no caller. Between two calls Python releases the
lock. The functions in this module cut a text at positions that do not change the matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lithos.kernel.values.graphemes import whole
from lithos.text.sentences import GAP_CHARACTERS

#: Number of characters per call, which takes about a millisecond.
PIECE: Final = 65_536

#: A piece ends after this run. White space, the end of a sentence and its closing marks stay together.
_SPACE: Final = re.compile(rf"[{GAP_CHARACTERS}]*")
_OPENING: Final = "[["


def matches_of_space(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Yield the matches of `pattern` in `text[start:end]`.

    The pattern must match only white space, ends of sentences or the empty string.

    An empty match at the end of a piece is yielded twice.
    """
    while start < end:
        space = _SPACE.match(text, start + PIECE, end)
        stop = space.end() if space else end
        yield from pattern.finditer(text, start, stop)
        start = stop


def matches_in_lines(pattern: re.Pattern[str], text: str, start: int) -> Iterator[re.Match[str]]:
    """Yield the matches of `pattern` from `start` on.

    A match must begin at the beginning of a line and must not extend beyond the line.
    """
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
    """Yield the bounds of the pieces of `text[start:end]`.

    A piece ends after a paragraph if possible, else after a line.

    A line that is too long is cut at a space if possible. A run of the character `keeps` is never cut.
    """
    while end - start > PIECE:
        stop = start + PIECE
        found = (text.rfind(mark, start, stop) + len(mark) for mark in ("\n\n", "\n", " "))
        stop = next((each for each in found if each > start + 1), whole(text, stop, start))
        while keeps and stop < end and text[stop] == keeps:
            stop += 1
        yield start, stop
        start = stop
    if start < end:
        yield start, end


def matches_of_brackets(
    pattern: re.Pattern[str], text: str, opening: str = _OPENING
) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern that begins with `opening` and contains no other `opening`."""
    start = 0
    while len(text) - start > PIECE:
        stop = start + PIECE
        # The last match of a piece may extend beyond the piece. One more character is searched, because the
        # boundary may be inside the opening bracket.
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
    """Yield the text in pieces that end after a line. A line of more than `PIECE` characters is cut."""
    start = 0
    while len(text) - start > PIECE:
        stop = text.rfind("\n", start, start + PIECE) + 1 or whole(text, start + PIECE, start)
        yield text[start:stop]
        start = stop
    yield text[start:]


def cut_at_spaces(text: str) -> Iterator[str]:
    """Yield the text in pieces that end before a space. A word of more than `PIECE` characters is cut."""
    start = 0
    while len(text) - start > PIECE:
        stop = text.rfind(" ", start + 1, start + PIECE)
        stop = stop if stop > 0 else start + PIECE
        yield text[start:stop]
        start = stop
    yield text[start:]
