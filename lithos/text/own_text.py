"""Check whether a note contains text of its own, which can answer a question.

Headings, links, tags and queries do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

#: Languages of fenced blocks that query the vault or arrange its notes. Such blocks do not count as text.
_QUERIES: Final = frozenset(
    {"dataview", "dataviewjs", "query", "tasks", "base", "button", "toc", "table-of-contents"}
)
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([\w-]*)")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_WORD: Final = re.compile(r"[^\W_]")
_MARKS: Final = re.compile(r"[\[<#%`:]")
#: Links, embeds, HTML tags, comments, inline queries, addresses, tags and callout marks, which do not count
#: as text.
_NOT_SAID: Final = re.compile(
    r"!?\[\[[^\[\]]*\]\]"
    r"|!?\[[^\[\]]*\]\([^()]*\)"
    r"|\[![^\[\]]*\]"
    r"|<[^<>]*>"
    r"|%%[^%]*%%"
    r"|`\$?=[^`]*`"
    r"|\bhttps?://\S*"
    r"|(?<!\S)#[\w/-]+"
)
#: Maximum length in characters of a line to search for words. Longer lines count as text without a search,
#: which would take long.
_LONGEST_LINE: Final = 4_096


def has_own_text(content: str) -> bool:
    """Return whether a body has a word outside headings, links, tags, queries and comments.

    The scan stops at the first such word, which is usually in the first lines.
    """
    for line in _lines(content):
        if len(line) > _LONGEST_LINE:
            return True
        said = _NOT_SAID.sub(" ", line) if _MARKS.search(line) else line
        if _WORD.search(said):
            return True
    return False


def _lines(content: str) -> Iterator[str]:
    """Yield the lines that are neither headings nor part of a fenced query."""
    fence = ""
    position = 0
    while position < len(content):
        end = content.find("\n", position)
        end = len(content) if end < 0 else end
        line = content[position:end]
        position = end + 1
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
        elif mark:
            if mark[2].lower() in _QUERIES:
                fence = mark[1]
        elif not _HEADING.match(line):
            yield line
