"""Own text: whether a note has text that can answer a question.

Headings, links, tags and queries alone do not answer a question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

#: Languages of fenced blocks that query the vault or arrange it, so that they do not count as text.
_QUERIES: Final = frozenset(
    {"dataview", "dataviewjs", "query", "tasks", "base", "button", "toc", "table-of-contents"}
)
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([\w-]*)")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_WORD: Final = re.compile(r"[^\W_]")
_MARKS: Final = re.compile(r"[\[<#%`:]")
#: Links, embeds, HTML tags, comments, inline queries, addresses, tags and callout marks.
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
#: Maximum length in characters of a line that is searched for words. A longer line counts as text, because
#: searching it would take long.
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
    """Yield the lines without headings and without fenced blocks that are queries."""
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
