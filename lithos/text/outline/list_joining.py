"""Decision whether a block continues a neighbouring list or table, so that no blank line may separate them.

Only the source lines from the last blank line to the insertion point are examined. A parser would have to
read the whole text for each line that an agent appends to a log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, takewhile
from typing import Final

from attrs import frozen

_MARKER: Final = re.compile(r"([ \t]*)([-*+]|\d{1,9}([.)]))([ \t]{0,4})(?=[ \t]|\S|\Z)")
_RULE: Final = re.compile(r"[ \t]*(?:-[ \t]*){3,}\Z|[ \t]*(?:\*[ \t]*){3,}\Z")
_QUOTE: Final = re.compile(r" {0,3}>[ \t]?")
#: Beginnings of unindented lines that start another block and therefore do not continue a list item.
_OTHER_BLOCKS: Final = ("#", ">", "|", "<", "-->", "```", "~~~", "$$", "%%")
#: Maximum number of lines of a block to examine.
_MOST_LINES: Final = 5_000
#: Width of a tab in columns. It is also the indentation from which a line is code.
_TAB = 4


@frozen
class _Item:
    """First line of a list item: column of its marker, column of its text, and kind of list."""

    column: int
    text: int
    kind: str


def joins_above(above: str, block: str) -> bool:
    """Return whether the block continues the list or table at the end of `above`."""
    first = block.split("\n", 1)[0].rstrip("\r")
    if "|" not in first and _item(_unquoted(first)) is None:
        return False
    return _continues(_lines_up(above), first, block)


def joins_below(block: str, below: str) -> bool:
    """Return whether the list at the beginning of `below` continues the list at the end of `block`."""
    lines = islice(_lines_down(below), _MOST_LINES)
    first = next(lines, "")
    item = _item(_unquoted(first))
    if item is None or _is_loose(map(_unquoted, lines), item):
        return False
    return _continues(_lines_up(block), first, "")


def _continues(lines: Iterator[str], first: str, block: str) -> bool:
    """Return whether a block with the first line `first` continues the block of `lines`.

    `lines` are in reverse order.
    """
    lines = islice(lines, _MOST_LINES)
    if _QUOTE.match(first):
        lines = map(_unquoted, takewhile(_QUOTE.match, lines))
        first = _unquoted(first)
    item = _item(first)
    if item is None:
        return bool(block) and _is_row(first) and not _has_own_head(block) and _is_table(lines)
    return _joins_list(lines, item)


def _joins_list(lines: Iterator[str], item: _Item) -> bool:
    """Return whether an item belongs to the list at the end of `lines`. `lines` are in reverse order."""
    shallowest: _Item | None = None
    for line in lines:
        if not line.strip():
            break
        found = _item(line)
        if found is None:
            if line.startswith(_OTHER_BLOCKS) or _RULE.match(line):
                return False
            continue
        shallowest = found
        if found.column <= item.column:
            if item.column >= found.text:
                return True
            return found.kind == item.kind and not _is_loose(lines, found)
    return shallowest is not None and shallowest.column < _TAB and shallowest.kind == item.kind


def _is_loose(further: Iterator[str], item: _Item) -> bool:
    """Return whether a blank line separates an item from its neighbour, as in a loose list.

    `further` contains the lines from the item towards its neighbour and beyond.
    """
    is_parted = False
    for line in further:
        if not line.strip():
            is_parted = True
            continue
        found = _item(line)
        if found is not None and found.column <= item.column:
            return is_parted and found.kind == item.kind
        if is_parted and found is None and not line.startswith((" ", "\t")):
            return False
    return False


def _is_table(lines: Iterator[str]) -> bool:
    """Return whether these lines, in reverse order, end with a table."""
    for line in takewhile(_is_row, lines):
        if _is_delimiter(line):
            return _is_row(next(lines, ""))
    return False


def _has_own_head(block: str) -> bool:
    """Return whether a block is a table with its own header."""
    return any(_is_delimiter(_unquoted(line)) for line in block.splitlines()[1:2])


def _is_row(line: str) -> bool:
    return "|" in line and not line.startswith(("```", "~~~"))


def _is_delimiter(line: str) -> bool:
    return "-" in line and "|" in line and not line.strip(" \t|:-")


def _item(line: str) -> _Item | None:
    found = _MARKER.match(line)
    if found is None or _RULE.match(line) or (not found[4] and found.end() < len(line)):
        return None
    column = len(found[1].expandtabs(_TAB))
    return _Item(column, column + len(found[2]) + 1, found[3] or found[2])


def _unquoted(line: str) -> str:
    """Return the line without a quote mark."""
    found = _QUOTE.match(line)
    return line[found.end() :] if found else line


def _lines_up(text: str) -> Iterator[str]:
    """Yield the lines of a text in reverse order."""
    end = len(text)
    while end > 0:
        begin = text.rfind("\n", 0, end) + 1
        yield text[begin:end].rstrip("\r")
        end = begin - 1


def _lines_down(text: str) -> Iterator[str]:
    """Yield the lines of a text."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin)
        end = len(text) if end < 0 else end
        yield text[begin:end].rstrip("\r")
        begin = end + 1
