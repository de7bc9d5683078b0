"""Going through very many notes without holding up everybody else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar

import trio

T = TypeVar("T")

#: Notes looked at in one turn of the event loop: some two milliseconds.
SLICE: Final = 250


async def slices(items: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    """Give `items` in slices; others may run in between, and change what the items were taken from."""
    for start in range(0, len(items), SLICE):
        if start:
            await trio.lowlevel.checkpoint()
        yield items[start : start + SLICE]
