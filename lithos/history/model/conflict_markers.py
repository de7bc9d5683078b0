"""Merged texts with conflicts between markers, in the format that `git merge-file` uses.

The format is used only for files that git merges (docs/spec/copies.md §3). Tools never write markers
(`merging`). Lines that both sides of a conflict share are written outside the markers. Two conflicts with at
most `NEAR` common lines between them are joined into one, as in xdiff (git, xdiff/xmerge.c, "zealous").
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from attrs import define, field, frozen

from lithos.notes.format.merging import MOST_LINES, Bounds, LineMerge, NumberedLines
from lithos.text.outline.differences import match_lines

#: Maximum number of common lines between two conflicts that are joined.
NEAR: Final = 3
#: Default length of a conflict marker in characters.
MARKER_SIZE: Final = 7


@frozen
class Markers:
    """The marker lines around the two sides of a conflict."""

    ours: str = "ours"
    theirs: str = "theirs"
    size: int = MARKER_SIZE

    @property
    def lines(self) -> tuple[str, str, str]:
        """Return the marker lines that begin a conflict, separate its sides, and end the conflict."""
        opening, middle, closing = (sign * self.size for sign in "<=>")
        return f"{opening} {self.ours}".rstrip(), middle, f"{closing} {self.theirs}".rstrip()


@frozen
class Marked:
    """A merged text and the number of marked conflicts in the text."""

    text: str
    conflicts: int = 0


def mark_texts(base: str, ours: str, theirs: str, markers: Markers) -> Marked:
    """Merge two changes of a text by lines, as `merging.merge_texts` does.

    Overlapping changes are marked as conflicts.

    The merged text has every line of each side, except lines that the other side deleted.
    """
    if ours in (theirs, base):
        return Marked(theirs)
    if theirs == base:
        return Marked(ours)
    numbers: dict[str, int] = {}
    was, mine, other = (NumberedLines.of(text, numbers) for text in (base, ours, theirs))
    if any(len(side.texts) > MOST_LINES for side in (was, mine, other)):
        was = NumberedLines.of("", numbers)
    return _Marking(was, mine, other, markers).mark()


@define
class _Side:
    texts: list[str] = field(factory=list)
    breaks: list[str] = field(factory=list)


@define
class _Clash:
    """A conflict that replaces the merged lines from `at` to `end`.

    The replaced range may be empty, or be between two conflicts.
    """

    at: int
    end: int
    ours: _Side
    theirs: _Side


class _Marking(LineMerge):
    """A merge by lines that does not stop at overlapping changes."""

    def __init__(
        self, base: NumberedLines, mine: NumberedLines, theirs: NumberedLines, markers: Markers
    ) -> None:
        super().__init__(base, mine, theirs)
        self._markers = markers
        self._clashes: list[_Clash] = []
        #: Positions in the merged lines at which a side changed something.
        self._changes: list[int] = []

    def mark(self) -> Marked:
        """Return the merged text with its conflicts marked."""
        self._walk()
        clashes = self._near_ones_joined()
        opening, middle, closing = self._markers.lines
        decided = _Side(self._texts, self._breaks)
        self._texts, self._breaks, done = [], [], 0
        for clash in clashes:
            self._add(decided, done, clash.at)
            for line, side in ((opening, clash.ours), (middle, clash.theirs)):
                self._add(_Side([line], [""]))
                self._add(side)
            self._add(_Side([closing], [""]))
            done = clash.end
        self._add(decided, done)
        text = self._joined()
        ends_marked = bool(clashes) and done == len(decided.texts)
        return Marked(text + "\n" if ends_marked and not text.endswith("\n") else text, len(clashes))

    def _add(self, side: _Side, start: int = 0, end: int | None = None) -> None:
        self._texts += side.texts[start:end]
        self._breaks += side.breaks[start:end]

    def _take(self, side: NumberedLines, bounds: Bounds) -> None:
        self._changes.append(len(self._texts))
        super()._take(side, bounds)

    def _settle(self, base: Bounds, mine: Bounds, theirs: Bounds) -> None:
        if base[0] < base[1] or mine[0] < mine[1] or theirs[0] < theirs[1]:
            super()._settle(base, mine, theirs)

    def _overlap(self, base: Bounds, mine: Bounds, theirs: Bounds) -> None:
        for ours, others, common in self._split(mine, theirs):
            if ours[0] < ours[1] or others[0] < others[1]:
                sides = ((self._mine, ours), (self._theirs, others))
                taken = [_Side([*side.texts[slice(*at)]], [*side.breaks[slice(*at)]]) for side, at in sides]
                self._clashes.append(_Clash(len(self._texts), len(self._texts), *taken))
            self._add(_Side([*self._mine.texts[slice(*common)]], [*self._mine.breaks[slice(*common)]]))

    def _split(self, mine: Bounds, theirs: Bounds) -> Iterator[tuple[Bounds, Bounds, Bounds]]:
        """Yield the differing lines of both sides of an overlap.

        The common lines after each pair of differing lines are yielded as well.
        """
        at, other = mine[0], theirs[0]
        blocks, _ = match_lines(self._mine.numbers[slice(*mine)], self._theirs.numbers[slice(*theirs)])
        for i, j, size in (*blocks, (mine[1] - mine[0], theirs[1] - theirs[0], 0)):
            start, begin = mine[0] + i, theirs[0] + j
            yield (at, start), (other, begin), (start, start + size)
            at, other = start + size, begin + size

    def _near_ones_joined(self) -> list[_Clash]:
        joined: list[_Clash] = []
        for clash in self._clashes:
            last = joined[-1] if joined else None
            if last is None or clash.at - last.end > NEAR or self._is_changed(last.end, clash.at):
                joined.append(clash)
                continue
            for side, more in ((last.ours, clash.ours), (last.theirs, clash.theirs)):
                side.texts += self._texts[last.end : clash.at] + more.texts
                side.breaks += self._breaks[last.end : clash.at] + more.breaks
            last.end = clash.at
        return joined

    def _is_changed(self, start: int, end: int) -> bool:
        """Return whether a side changed these merged lines, or the text just before or after them."""
        found = bisect_left(self._changes, start)
        return found < len(self._changes) and self._changes[found] <= end
