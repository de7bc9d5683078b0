"""Masks the parts of a Markdown text in which links do not count.

Links in fenced, indented and inline code, and in HTML comments, are ignored.

A move does not change links in these parts. All functions take linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from attrs import define, field

from lithos.text.markdown import CODE_MARK, code_fences, mask_code
from lithos.text.pieces import matches_in_lines

#: A line that may be indented code and contains a bracket. List lines also match.
_CANDIDATE: Final = re.compile(r"^(?>[ >]*?(?: {4}|\t))[^\n\[]*+\[", re.MULTILINE)
#: A line with its quote marks, its indentation and its text.
_LINE: Final = re.compile(r"^((?: {0,3}>)*+)([ \t]*+)([^\n]*+)", re.MULTILINE)
#: The beginning of a block whose next lines may be indented: a list item here, a footnote or a MkDocs block
#: in `_BLOCK`.
_ITEM: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:(?=[ \t\r]*$)|[ \t]+)")
_BLOCK: Final = re.compile(r"\[\^[^\[\]\n]{1,200}\]:|(?:!!!|\?\?\?\+?|===)[ \t]")
_RULE: Final = re.compile(r"(?:(?:\*[ \t]*+){3,}+|(?:-[ \t]*+){3,}+|(?:_[ \t]*+){3,}+)\r?$")
_HEADING: Final = re.compile(r"#{1,6}(?:[ \t\r]|$)")
#: Number of columns by which a line of code is indented. Also the width of a tab.
_CODE_INDENT: Final = 4
#: Maximum number of list items that can begin on one line.
_MOST_ITEMS: Final = 32
_COMMENT: Final = "<!--"
_COMMENT_END: Final = "-->"


def mask_literal(text: str) -> str:
    """Return `text` with `CODE_MARK` in place of each character in code and HTML comments.

    The positions of all other characters stay the same.

    A comment that is not closed does not count as a comment.
    """
    masked = mask_code(text)
    if ("    " in masked or "\t" in masked) and _CANDIDATE.search(masked) is not None:
        masked = _covered(masked, indented_code(text))
    if _COMMENT in masked:
        masked = _covered(masked, _comments(masked))
    return masked


def _covered(text: str, spans: Iterable[tuple[int, int]]) -> str:
    parts: list[str] = []
    done = 0
    for start, end in spans:
        parts += (text[done:start], CODE_MARK * (end - start))
        done = end
    return "".join([*parts, text[done:]]) if parts else text


def _comments(text: str) -> Iterator[tuple[int, int]]:
    end = 0
    while (start := text.find(_COMMENT, end)) >= 0:
        closing = text.find(_COMMENT_END, start + len(_COMMENT))
        if closing < 0:
            return
        end = closing + len(_COMMENT_END)
        yield start, end


def indented_code(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each line of indented code, without the line break, by the CommonMark rules.

    Lines that continue a list item, a footnote or a paragraph are not code.
    """
    blocks, fences = _Blocks(), code_fences(text)
    start, end = next(fences, (len(text), len(text)))
    for line in matches_in_lines(_LINE, text, 0):
        while end < line.start() and start < len(text):
            start, end = next(fences, (len(text), len(text)))
        if start <= line.start() <= end and start < len(text):
            if line.start() == start:
                blocks.enter_fence(line)
        elif blocks.is_code(line):
            yield line.start(3), line.end(3)


@define
class _Blocks:
    """The open blocks at the beginning of a line."""

    #: The columns at which the texts of the open items begin, from the outermost item to the innermost.
    _columns: list[int] = field(factory=list)
    _quotes: int = 0
    _is_paragraph: bool = False

    def enter_fence(self, line: re.Match[str]) -> None:
        """Process the first line of a fence. The fence may be in a new item."""
        self.is_code(line)
        self._is_paragraph = False

    def is_code(self, line: re.Match[str]) -> bool:
        """Return whether a line is indented code. All earlier lines must already have been processed."""
        quotes, rest = line[1].count(">"), line[3]
        if not rest.strip():
            self._is_paragraph = False
            return False
        if quotes != self._quotes:
            self._quotes, self._columns, self._is_paragraph = quotes, [], False
        indent = _width(line[2]) - (1 if quotes and line[2] else 0)
        if self._is_paragraph and not self._interrupts(rest):
            return False
        while self._columns and indent < self._columns[-1]:
            self._columns.pop()
        if indent - (self._columns[-1] if self._columns else 0) >= _CODE_INDENT:
            return not self._is_paragraph
        self._enter(rest, indent)
        return False

    @staticmethod
    def _interrupts(rest: str) -> bool:
        return any(each.match(rest) is not None for each in (_ITEM, _BLOCK, _HEADING, _RULE))

    def _enter(self, rest: str, column: int) -> None:
        """Record the items that begin on a line, and whether a paragraph begins there."""
        for _ in range(_MOST_ITEMS):
            if _RULE.match(rest) is not None or (item := _ITEM.match(rest)) is None:
                break
            width = len(item[0].expandtabs(_CODE_INDENT))
            marker = len(item[0].rstrip())
            column += width if width - marker <= _CODE_INDENT else marker + 1
            self._columns.append(column)
            rest = rest[item.end() :]
        if _BLOCK.match(rest) is not None:
            self._columns.append(column + _CODE_INDENT)
        is_text = bool(rest.strip()) and _HEADING.match(rest) is None and _RULE.match(rest) is None
        self._is_paragraph = is_text and not rest.startswith(("!!!", "???", "==="))


def _width(blanks: str) -> int:
    return len(blanks.expandtabs(_CODE_INDENT))
