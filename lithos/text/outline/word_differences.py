"""Which words of changed lines are changed: pure, and bounded as the matching of lines is.

Words, marks and longer spaces are matched across all lines of a change, so that it does not matter which of
the old lines became which of the new ones. A line of which little is left is new as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from lithos.text.outline.differences import match_lines

#: Characters of either side of a change in which words are looked for.
MOST_CHARACTERS: Final = 20_000
#: The part of a line's characters from which on the line is new as a whole.
MOSTLY: Final = 0.7
#: A word, a mark with the space before it, a longer or unusual space; single spaces go with their words.
_TOKEN: Final = re.compile(r"\w+| ?[^\w\s]| {2,}|[^\S \n]+")

#: Where something begins and ends in a line.
Span = tuple[int, int]
#: A word with the number of its line and its place there.
_Token = tuple[str, int, Span]


def changed_words(old: Sequence[str], new: Sequence[str]) -> tuple[list[list[Span]], list[list[Span]]]:
    """For each of the old and of the new lines of a change, the spans of what is not in the other lines.

    No spans for a line that is new as a whole. Where there is too much to look through one span for each of
    as many lines, from the first difference to the last.
    """
    if not old or not new:
        return [[] for _ in old], [[] for _ in new]
    if max(sum(map(len, old)), sum(map(len, new))) > MOST_CHARACTERS:
        return _between_ends(old, new) if len(old) == len(new) else ([[] for _ in old], [[] for _ in new])
    sides = list(_tokens_of(old)), list(_tokens_of(new))
    numbers: dict[str, int] = {}
    one, other = ([numbers.setdefault(word, len(numbers)) for word, _, _ in side] for side in sides)
    if one == other:  # nothing but spaces between the words
        return _between_ends(old, new)
    blocks, _ = match_lines(one, other)
    kept = _places((start, size) for start, _, size in blocks), _places((at, size) for _, at, size in blocks)
    return _spans(sides[0], kept[0], old), _spans(sides[1], kept[1], new)


def _tokens_of(lines: Sequence[str]) -> Iterator[_Token]:
    for number, line in enumerate(lines):
        yield from ((found[0], number, found.span()) for found in _TOKEN.finditer(line))


def _places(runs: Iterable[tuple[int, int]]) -> set[int]:
    return set(chain.from_iterable(range(start, start + size) for start, size in runs))


def _spans(tokens: Sequence[_Token], kept: set[int], lines: Sequence[str]) -> list[list[Span]]:
    """Return the spans of the words that are not kept; those that only spaces part are one."""
    found: list[list[Span]] = [[] for _ in lines]
    for place, (_, number, (start, end)) in enumerate(tokens):
        if place in kept:
            continue
        spans = found[number]
        if spans and not lines[number][spans[-1][1] : start].strip(" "):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return [
        [] if sum(end - start for start, end in spans) > MOSTLY * len(line.strip()) else spans
        for spans, line in zip(found, lines, strict=True)
    ]


def _between_ends(old: Sequence[str], new: Sequence[str]) -> tuple[list[list[Span]], list[list[Span]]]:
    """Return for each pair of lines the parts between their equal beginnings and ends."""
    found: tuple[list[list[Span]], list[list[Span]]] = [[] for _ in old], [[] for _ in new]
    for number, (before, after) in enumerate(zip(old, new, strict=False)):
        most = min(len(before), len(after))
        start = next((at for at in range(most) if before[at] != after[at]), most)
        left = most - start
        end = next((at for at in range(left) if before[-1 - at] != after[-1 - at]), left)
        for spans, line in ((found[0], before), (found[1], after)):
            if start < len(line) - end:
                spans[number].append((start, len(line) - end))
    return found
