"""Where an excerpt may begin and end: at a line, an item, a row or a sentence, and never within a link."""

from __future__ import annotations

import re
from typing import Final

#: Characters before a place, and behind it, that are looked at.
BACK: Final = 1_000
AHEAD: Final = 600

#: What begins an item, a quote or a row.
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+|>]|\d{1,9}[.)])(?:[ \t]|\||$)")
_SENTENCE_END: Final = re.compile(r"[.!?…][\"'”’)\]*_]{0,4}(?=\s)|[。！？]")
#: A link, or what of one stands before the end of the text; none has a line break inside.
_LINK: Final = re.compile(
    r"!?\[\[[^\[\]\n]*(?:\]\]|\Z)|!?\[[^\[\]\n]*(?:\](?:\([^()\n]*(?:\)|\Z))?|\Z)|<?https?://[^\s<>)\]]+>?"
)


def tidy_edge(text: str, at: int, least: int) -> int:
    """The place at or before `at`, and after `least`, where a text is best cut; `at` where there is none.

    Looks at a bounded part of the text.
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
        for found in _SENTENCE_END.finditer(text, begin, at + 1)
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
    return inside if inside > least else at
