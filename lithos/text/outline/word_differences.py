"""Word differences: the words that differ within changed lines. Time is limited as in line matching.

Words, punctuation and longer spaces are matched across all lines of a change, regardless of which old line
became which new line. If most of a line changed, the whole line counts as new.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from lithos.text.outline.differences import match_lines

#: Maximum number of characters on each side of a change. Words of larger changes are not compared.
MOST_CHARACTERS: Final = 20_000
#: Share of changed characters above which a whole line counts as new.
MOSTLY: Final = 0.7
#: A word, a punctuation mark with the space before it, or a longer or unusual space. A single space between
#: words is not a token.
_TOKEN: Final = re.compile(r"\w+| ?[^\w\s]| {2,}|[^\S \n]+")

#: Start and end of a range in a line.
Span = tuple[int, int]
#: A word, its line number, and its position in the line.
_Token = tuple[str, int, Span]


def changed_words(old: Sequence[str], new: Sequence[str]) -> tuple[list[list[Span]], list[list[Span]]]:
    """Return the spans of changed words for each old line, and for each new line of a change.

    A line that is entirely new has no spans. If the change is too large to compare words, each pair of lines
    has one span, from the first to the last difference. If the numbers of lines then differ, there are no
    spans.
    """
    if not old or not new:
        return [[] for _ in old], [[] for _ in new]
    if max(sum(map(len, old)), sum(map(len, new))) > MOST_CHARACTERS:
        return _between_ends(old, new) if len(old) == len(new) else ([[] for _ in old], [[] for _ in new])
    sides = list(_tokens_of(old)), list(_tokens_of(new))
    numbers: dict[str, int] = {}
    one, other = ([numbers.setdefault(word, len(numbers)) for word, _, _ in side] for side in sides)
    if one == other:  # The lines differ only in the spaces between words.
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
    """Return the spans of the words that are not in `kept`. Spans that only spaces separate are joined."""
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
    """Return the spans between the equal beginnings and equal endings of each pair of lines."""
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
