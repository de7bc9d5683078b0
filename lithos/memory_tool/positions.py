"""Position of a line after other writers changed a text."""

from __future__ import annotations

from typing import Final

from lithos.memory_tool.texts import lines_of
from lithos.text.outline.differences import match_lines

#: Maximum number of lines of each text. Longer texts are not compared, and positions stay as they are.
_MOST_COMPARED: Final = 20_000


def line_now(seen: str, now: str, line: int) -> int:
    """Return after which line of `now` to insert a text, if the caller counted the lines in `seen`.

    That is the line with the same text in the same place. If both lines next to the position were changed by
    others, it is the end of their change.
    """
    before, after = lines_of(seen) if seen else [], lines_of(now) if now else []
    if seen == now or not 0 <= line <= len(before) or max(len(before), len(after)) > _MOST_COMPARED:
        return line
    if line == 0:
        return 0
    numbers: dict[str, int] = {}
    first, second = ([numbers.setdefault(each, len(numbers)) for each in side] for side in (before, after))
    blocks, _ = match_lines(first, second)
    for i, j, count in blocks:
        if i < line <= i + count:
            return j + line - i
        if i >= line:
            return j
    return len(after)
