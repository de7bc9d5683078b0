"""Line matching of two texts, and unified diffs of two note versions. Time and size are limited.

Lines that occur exactly once in each text are anchors. Their longest increasing subsequence is used (patience
diff, Bram Cohen). `difflib` matches the remaining lines between two anchors. Its cost grows with the number
of equal line pairs, so each comparison has a budget of pairs. A range that exceeds the budget stays
unmatched, as if it had been rewritten. A merge may then report an overlap that a better matching would avoid,
but it never misses one. The diff format is described in GNU diffutils, "Detailed Description of Unified
Format".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from itertools import chain
from typing import Final

from attrs import frozen

from lithos.kernel.values.graphemes import beginning

#: Maximum number of equal line pairs that `difflib` may examine: per line of both texts, and in total.
PAIRS_PER_LINE: Final = 100
MOST_PAIRS: Final = 2_000_000
#: Maximum depth at which unique lines between two anchors are used as further anchors.
_DEPTH: Final = 8

#: Start of a run of equal lines in the first text, its start in the second text, and its number of lines.
Block = tuple[int, int, int]
#: Line operation (`equal`, `replace`, `delete` or `insert`), and its bounds in both texts.
EditScriptStep = tuple[str, int, int, int, int]
#: Bounds of a range in the first text, then in the second text.
_Range = tuple[int, int, int, int]


def match_lines(first: Sequence[int], second: Sequence[int]) -> tuple[list[Block], bool]:
    """Return the non-empty blocks of equal lines in ascending order, and whether the budget sufficed.

    Lines are passed as numbers. Equal numbers mean equal lines.
    """
    budget = min(MOST_PAIRS, PAIRS_PER_LINE * (len(first) + len(second)))
    # For each line of the first text, the index of the matching line in the second text, or -1.
    partners = [-1] * len(first)
    is_complete = True
    waiting: list[tuple[_Range, int]] = [((0, len(first), 0, len(second)), 0)]
    while waiting:
        whole, depth = waiting.pop()
        inner = _cut_ends(first, second, whole, partners)
        if inner[0] == inner[1] or inner[2] == inner[3]:
            continue
        anchors = _anchors(first, second, inner) if depth < _DEPTH else []
        if anchors:
            for i, j in anchors:
                partners[i] = j
            waiting += ((gap, depth + 1) for gap in _gaps(inner, anchors))
        else:
            budget, is_whole = _match_repeated(first, second, inner, budget, partners)
            is_complete &= is_whole
    return _blocks(partners), is_complete


def _cut_ends(first: Sequence[int], second: Sequence[int], whole: _Range, partners: list[int]) -> _Range:
    """Match the equal lines at both ends of a range. Return the range between them."""
    i, i_end, j, j_end = whole
    while i < i_end and j < j_end and first[i] == second[j]:
        partners[i] = j
        i, j = i + 1, j + 1
    while i < i_end and j < j_end and first[i_end - 1] == second[j_end - 1]:
        i_end, j_end = i_end - 1, j_end - 1
        partners[i_end] = j_end
    return i, i_end, j, j_end


def _anchors(first: Sequence[int], second: Sequence[int], inner: _Range) -> list[tuple[int, int]]:
    """Return pairs of positions of lines that occur exactly once in the range of each text.

    The pairs form the longest sequence that has the same order in both texts.
    """
    once = _positions_of_single(first, inner[0], inner[1])
    other = _positions_of_single(second, inner[2], inner[3])
    pairs = [(i, j) for line, i in once.items() if (j := other.get(line)) is not None]
    # Longest increasing subsequence of the second positions. `tails[n]` is the last pair of the best
    # subsequence of n + 1 pairs.
    tails: list[int] = []
    ending: list[int] = []
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        length = bisect_left(tails, j)
        before.append(ending[length - 1] if length else -1)
        if length == len(tails):
            tails.append(j)
            ending.append(number)
        else:
            tails[length], ending[length] = j, number
    chosen: list[tuple[int, int]] = []
    number = ending[-1] if ending else -1
    while number >= 0:
        chosen.append(pairs[number])
        number = before[number]
    chosen.reverse()
    return chosen


def _positions_of_single(lines: Sequence[int], start: int, end: int) -> dict[int, int]:
    """Return the position of each line that occurs exactly once in the range."""
    positions: dict[int, int] = {}
    for position in range(start, end):
        line = lines[position]
        positions[line] = -1 if line in positions else position
    return {line: position for line, position in positions.items() if position >= 0}


def _gaps(inner: _Range, anchors: Sequence[tuple[int, int]]) -> Iterator[_Range]:
    """Yield the ranges before, between and after anchors if they contain lines of both texts."""
    i, j = inner[0], inner[2]
    for to_i, to_j in (*anchors, (inner[1], inner[3])):
        if i < to_i and j < to_j:
            yield i, to_i, j, to_j
        i, j = to_i + 1, to_j + 1


def _match_repeated(
    first: Sequence[int], second: Sequence[int], inner: _Range, budget: int, partners: list[int]
) -> tuple[int, bool]:
    """Match a range with `difflib`, longest match first.

    Return the remaining budget and whether it sufficed.
    """
    i_start, j_start = inner[0], inner[2]
    lines, others = first[i_start : inner[1]], second[j_start : inner[3]]
    matcher = SequenceMatcher(None, lines, others, autojunk=False)
    counts: dict[int, int] = {}
    for line in others:
        counts[line] = counts.get(line, 0) + 1
    waiting = [(0, len(lines), 0, len(others))]
    while waiting:
        i, i_end, j, j_end = waiting.pop()
        pairs = sum(counts.get(lines[at], 0) for at in range(i, i_end))
        if not pairs:
            continue
        if pairs + i_end - i > budget:
            return budget, False
        budget -= pairs + i_end - i
        at, to, size = matcher.find_longest_match(i, i_end, j, j_end)
        if not size:
            continue
        for number in range(size):
            partners[i_start + at + number] = j_start + to + number
        waiting += ((i, at, j, to), (at + size, i_end, to + size, j_end))
    return budget, True


def _blocks(partners: Sequence[int]) -> list[Block]:
    """Return the runs of matched lines that are consecutive in both texts."""
    blocks: list[Block] = []
    begin = -1
    for i, j in enumerate(partners):
        if begin >= 0 and (j < 0 or j != partners[i - 1] + 1):
            blocks.append((begin, partners[begin], i - begin))
            begin = -1
        if j >= 0 and begin < 0:
            begin = i
    if begin >= 0:
        blocks.append((begin, partners[begin], len(partners) - begin))
    return blocks


#: Maximum length of a diff in characters.
LONGEST_DIFF: Final = 20_000
#: Number of equal lines shown around a change.
CONTEXT: Final = 3
_NO_NEWLINE: Final = "\\ No newline at end of file"


@frozen
class Diff:
    """A unified diff. `is_truncated` is True if the full diff exceeds `LONGEST_DIFF` characters."""

    text: str
    is_truncated: bool


class _Matched(SequenceMatcher[str]):
    """Two texts whose equal lines are already known, so that `difflib` only groups the changes."""

    def __init__(self, first: Sequence[str], second: Sequence[str], blocks: Sequence[Block]) -> None:
        super().__init__(autojunk=False)
        self._blocks = [*(Match(*block) for block in blocks), Match(len(first), len(second), 0)]

    def get_matching_blocks(self) -> list[Match]:
        """Return the equal lines, and the end of both texts."""
        return self._blocks


def unified_diff(old: bytes, new: bytes, old_name: str, new_name: str) -> Diff:
    """Return the unified diff of two files. Its header contains their names. Equal files have an empty diff.

    Bytes that are not valid UTF-8 are shown as U+FFFD. Only LF separates lines, so a CR is part of its line.
    """
    if old == new:
        return Diff("", is_truncated=False)
    first, second = _lines_of(old), _lines_of(new)
    parts: list[str] = []
    size = 0
    for line in chain((f"--- {old_name}\n", f"+++ {new_name}\n"), _render(first, second)):
        parts.append(line)
        size += len(line)
        if size > LONGEST_DIFF:
            return Diff(beginning("".join(parts), LONGEST_DIFF), is_truncated=True)
    return Diff("".join(parts), is_truncated=False)


def group_changes(first: Sequence[str], second: Sequence[str]) -> Iterator[list[EditScriptStep]]:
    """Yield the line changes from one text to another in groups.

    A group includes up to `CONTEXT` equal lines before and after its changes.
    """
    numbers: dict[str, int] = {}
    one, other = ([numbers.setdefault(line, len(numbers)) for line in text] for text in (first, second))
    matched = _Matched(first, second, match_lines(one, other)[0])
    for group in matched.get_grouped_opcodes(CONTEXT):
        if len(first) - group[-1][2] <= CONTEXT:  # Only a few equal lines follow, so show them all.
            tag, i, _, j, _ = group[-1]
            group[-1] = tag, i, len(first), j, len(second)
        yield group


def count_lines(old: bytes, new: bytes) -> tuple[int, int]:
    """Return the number of added lines and the number of removed lines."""
    first, second = _lines_of(old), _lines_of(new)
    numbers: dict[str, int] = {}
    one, other = ([numbers.setdefault(line, len(numbers)) for line in text] for text in (first, second))
    same = sum(size for _, _, size in match_lines(one, other)[0])
    return len(second) - same, len(first) - same


def split_lines(text: str) -> list[str]:
    """Return the lines including their LF. The last line may have no LF."""
    lines = text.split("\n")
    last = lines.pop()
    return [line + "\n" for line in lines] + ([last] if last else [])


def _lines_of(data: bytes) -> list[str]:
    return split_lines(data.decode("utf-8", "replace"))


def _render(first: Sequence[str], second: Sequence[str]) -> Iterator[str]:
    for group in group_changes(first, second):
        _, i, _, j, _ = group[0]
        _, _, i_end, _, j_end = group[-1]
        yield f"@@ -{_range(i, i_end)} +{_range(j, j_end)} @@\n"
        for tag, i, i_end, j, j_end in group:
            if tag == "equal":
                yield from (_mark(" ", line) for line in first[i:i_end])
                continue
            yield from (_mark("-", line) for line in first[i:i_end])
            yield from (_mark("+", line) for line in second[j:j_end])


def _range(start: int, end: int) -> str:
    """Return `start,count`, with lines counted from 1.

    For an empty range, return the number of the line before it.
    """
    count = end - start
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def _mark(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n{_NO_NEWLINE}\n"
