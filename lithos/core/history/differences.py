"""Unified diffs of two versions of a note, bounded in time and size; pure.

Format: GNU diffutils, "Detailed Description of Unified Format". Lines are matched by
`lithos.core.history.line_matching`, whose budget bounds the time for any two texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import frozen

from lithos.core.history.line_matching import Block, match_lines

#: Characters of a diff.
LONGEST_DIFF: Final = 20_000
#: Equal lines around a change.
CONTEXT: Final = 3
_NO_NEWLINE: Final = "\\ No newline at end of file"


@frozen
class Diff:
    """A unified diff; `is_truncated` when it was longer than `LONGEST_DIFF` characters."""

    text: str
    is_truncated: bool


@frozen
class _Hunk:
    """A change with its context: line ranges in both texts, and the equal blocks within them."""

    i: int
    i_end: int
    j: int
    j_end: int
    equal: Sequence[Block]


def unified_diff(old: bytes, new: bytes, old_name: str, new_name: str) -> Diff:
    """The diff of two files, whose header names them; empty for equal ones.

    What is no UTF-8 is shown as U+FFFD; a line break is LF, so that CRs are part of their lines.
    """
    if old == new:
        return Diff("", is_truncated=False)
    first, second = _lines_of(old), _lines_of(new)
    numbers: dict[str, int] = {}
    one, other = ([numbers.setdefault(line, len(numbers)) for line in text] for text in (first, second))
    hunks = _hunks_of(match_lines(one, other).blocks, len(first), len(second))
    parts, room = [f"--- {old_name}\n", f"+++ {new_name}\n"], LONGEST_DIFF
    room -= sum(map(len, parts))
    for line in _render(hunks, first, second):
        if len(line) > room:
            parts.append(line[: max(0, room)])
            return Diff("".join(parts)[:LONGEST_DIFF], is_truncated=True)
        room -= len(line)
        parts.append(line)
    return Diff("".join(parts), is_truncated=False)


def _lines_of(data: bytes) -> list[str]:
    """Lines with their LF; the last may have none."""
    lines = data.decode("utf-8", "replace").split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def _hunks_of(blocks: Sequence[Block], i_end: int, j_end: int) -> Iterator[_Hunk]:
    """Changes whose contexts touch are in one hunk."""
    i = j = start_i = start_j = 0
    equal: list[Block] = []
    is_changed = False
    for at, to, size in (*blocks, (i_end, j_end, 0)):
        is_changed |= at > i or to > j
        is_last = not size
        if is_changed and (is_last or size > 2 * CONTEXT):
            after = min(CONTEXT, size)
            yield _Hunk(start_i, at + after, start_j, to + after, [*equal, (at, to, after)])
            equal, is_changed = [], False
        elif is_changed:
            equal.append((at, to, size))
        if not is_changed:  # the next hunk begins with the end of this block
            before = min(CONTEXT, size)
            start_i, start_j = at + size - before, to + size - before
            equal = [(start_i, start_j, before)]
        i, j = at + size, to + size


def _render(hunks: Iterator[_Hunk], first: Sequence[str], second: Sequence[str]) -> Iterator[str]:
    for hunk in hunks:
        yield f"@@ -{_range(hunk.i, hunk.i_end)} +{_range(hunk.j, hunk.j_end)} @@\n"
        i, j = hunk.i, hunk.j
        for at, to, size in (*hunk.equal, (hunk.i_end, hunk.j_end, 0)):
            yield from (_mark("-", line) for line in first[i:at])
            yield from (_mark("+", line) for line in second[j:to])
            yield from (_mark(" ", line) for line in first[at : at + size])
            i, j = at + size, to + size


def _range(start: int, end: int) -> str:
    """`start,count` with lines counted from 1; of an empty range the line before it."""
    count = end - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _mark(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n{_NO_NEWLINE}\n"
