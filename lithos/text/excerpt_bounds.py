"""Boundaries for excerpts. An excerpt ends after a line, list item, table row or sentence, never in a link.

An excerpt also never ends with a question or an announcement if the reply follows directly.
"""

from __future__ import annotations

import re
from typing import Final

from lithos.kernel.values.graphemes import whole
from lithos.text.sentences import CLOSED_END, asks, last_match

#: Maximum numbers of characters that are examined before and after a position.
BACK: Final = 1_000
AHEAD: Final = 600

#: Maximum length in characters of a reply that is added to the question before it.
LONGEST_REPLY: Final = 400

_BLOCK_END: Final = re.compile(r"\n[ \t]*\n")
_HEADING: Final = re.compile("#{1,6} ")
_SENTENCES_END: Final = (". ", "! ", "? ")
#: Beginning of a list item, a quote or a table row.
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+|>]|\d{1,9}[.)])(?:[ \t]|\||$)")
#: A link, or a link that is cut off at the end of the text. A link contains no line break.
_LINK: Final = re.compile(
    r"!?\[\[[^\[\]\n]*(?:\]\]|\Z)|!?\[[^\[\]\n]*(?:\](?:\([^()\n]*(?:\)|\Z))?|\Z)|<?https?://[^\s<>)\]]+>?"
)


def tidy_edge(text: str, at: int, least: int) -> int:
    """Return the best position between `least` and `at` to cut a text.

    Return `at` if no better position is found.

    Only a limited part of the text is examined.
    """
    if at <= least or at >= len(text):
        return at
    behind = text[max(least, at - BACK) : at]
    blank = len(behind) - len(behind.rstrip(" \t"))
    if not behind or behind.rstrip(" \t").endswith("\n") or text[at] == "\n":
        return at
    first = at - len(behind)
    line = text.rfind("\n", first, at) + 1
    begin = max(line, first)
    if line > least and _ITEM.match(text, line, at):
        return line
    links = [
        (found.start(), found.end())
        for found in _LINK.finditer(text, begin, min(len(text), at + AHEAD))
        if found.start() < at
    ]
    ends = [
        found.end()
        for found in CLOSED_END.finditer(text, begin, at + 1)
        if not any(start < found.end() < end for start, end in links)
    ]
    if ends and ends[-1] >= at - blank:
        return at
    later = [end for end in ends if end > least]
    if later:
        return later[-1]
    if line > least:
        return line
    inside = next((start for start, end in links if start < at < end), at)
    return inside if inside > least else whole(text, at, least)


def expects_more(text: str) -> bool:
    """Return whether a text ends with a question, a colon or a heading."""
    shown = text.rstrip()[-200:]
    if asks(shown):
        return True
    return "#" in shown and _HEADING.match(shown, shown.rfind("\n") + 1) is not None


def first_block(content: str, start: int, end: int, longest: int = LONGEST_REPLY) -> int:
    """Return the end of the first paragraph of `content[start:end]`.

    A long paragraph ends after a sentence.
    """
    found = _BLOCK_END.search(content, start, min(end, start + longest + 2))
    stop = end if found is None else found.start()
    if stop - start <= longest:
        return stop
    piece = content[start : start + longest]
    cut = max(piece.rfind("\n"), *(piece.rfind(mark) + 1 for mark in _SENTENCES_END))
    if not piece.isascii() and (found := last_match(CLOSED_END, piece, 0, longest)):
        cut = max(cut, found.end())
    return start + (cut if cut > 0 else max(piece.rfind(" "), whole(piece, longest // 2)))
