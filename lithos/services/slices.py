"""Going through very many notes without holding up everybody else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar

import trio

T = TypeVar("T")

#: Notes looked at in one turn of the event loop: some two milliseconds.
SLICE: Final = 250


async def slices(items: Sequence[T], size: int = SLICE) -> AsyncIterator[Sequence[T]]:
    """Give `items` in slices; others may run in between, and change what the items were taken from.

    `size` is for work that takes much less, or much more, than usual.
    """
    for start in range(0, len(items), size):
        if start:
            await trio.lowlevel.checkpoint()
        yield items[start : start + size]
