"""Titles regardless of case, joined in blocks of places, each of which is searched at once.

A block is made when it is first searched, and again after one of its notes has changed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

from attrs import frozen

#: Places of a block as a power of two: made in half a millisecond, searched in some hundredths.
BLOCK_BITS: Final = 10
_BETWEEN: Final = "\0"


@frozen
class _Block:
    """Joined titles, where each begins (and where the next one would), and whose they are."""

    text: str
    begins: Sequence[int]
    serials: Sequence[int]

    def find(self, wanted: str) -> list[int]:
        """Whose titles contain a text that is not empty."""
        found: list[int] = []
        text, begins, length = self.text, self.begins, len(wanted)
        at = text.find(wanted)
        while at >= 0:
            number = bisect_right(begins, at) - 1
            following = begins[number + 1]
            if at + length < following:  # not across the end of a title
                found.append(self.serials[number])
                at = text.find(wanted, following)
            else:
                at = text.find(wanted, at + 1)
        return found


class Titles:
    """The blocks that were searched and are current."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}

    def __len__(self) -> int:
        return len(self._blocks)

    def leave(self, block: int) -> None:
        """Forget a block: a note of it has changed, come or gone."""
        self._blocks.pop(block, None)

    def find(
        self, block: int, wanted: str, serials: Callable[[], Sequence[int]], title_of: Callable[[int], str]
    ) -> Sequence[int]:
        """Whose titles of a block contain `wanted`, which is case-folded; `serials` tells whose it has."""
        known = self._blocks.get(block)
        if known is None:
            whose = serials()
            titles = [title_of(serial).casefold() for serial in whose]
            begins = list(accumulate((len(title) + 1 for title in titles), initial=0))
            known = self._blocks[block] = _Block(_BETWEEN.join((*titles, "")), begins, whose)
        return known.find(wanted) if wanted else known.serials
