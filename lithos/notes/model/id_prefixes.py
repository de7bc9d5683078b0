"""The ids of all notes in order, to find ids by their beginning without reading every id.

The keys are stored in sorted blocks. A lookup bisects, and a change moves the keys of one block only, so that
a vault of a million notes can be filled one note at a time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

#: Number of keys at which a block is split into two.
_BLOCK: Final = 1_000


class SortedKeys:
    """A sorted set of texts."""

    def __init__(self) -> None:
        self._blocks: list[list[str]] = []
        #: The first key of each block.
        self._firsts: list[str] = []

    def load(self, keys: Iterable[str]) -> None:
        """Replace all keys by these different keys. This is faster than adding many keys one by one."""
        ordered, half = sorted(keys), _BLOCK // 2
        self._blocks = [ordered[begin : begin + half] for begin in range(0, len(ordered), half)]
        self._firsts = [block[0] for block in self._blocks]

    def add(self, key: str) -> None:
        """Add a key. A known key changes nothing."""
        if not self._blocks:
            self._blocks, self._firsts = [[key]], [key]
            return
        number = max(0, bisect_right(self._firsts, key) - 1)
        block = self._blocks[number]
        at = bisect_left(block, key)
        if at < len(block) and block[at] == key:
            return
        block.insert(at, key)
        self._firsts[number] = block[0]
        if len(block) >= _BLOCK:
            half = len(block) // 2
            self._blocks[number : number + 1] = [block[:half], block[half:]]
            self._firsts.insert(number + 1, block[half])

    def discard(self, key: str) -> None:
        """Remove a key. An unknown key changes nothing."""
        number = bisect_right(self._firsts, key) - 1
        if number < 0:
            return
        block = self._blocks[number]
        at = bisect_left(block, key)
        if at == len(block) or block[at] != key:
            return
        del block[at]
        if block:
            self._firsts[number] = block[0]
        else:
            del self._blocks[number], self._firsts[number]

    def starting(self, prefix: str, most: int) -> list[str]:
        """Return at most `most` keys that start with a text, in order."""
        found: list[str] = []
        number = max(0, bisect_left(self._firsts, prefix) - 1)
        for block in self._blocks[number : number + most + 2]:
            for key in block[bisect_left(block, prefix) :]:
                if len(found) >= most or not key.startswith(prefix):
                    return found
                found.append(key)
        return found
