"""Measurement that shows whether the time of a call grows linearly or quadratically with its text.

The measured time is the processor time of the current thread. Other processes do not affect this time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from attrs import frozen

Parse = Callable[[str], object]

#: Maximum growth from n to 4n characters. Linear work takes 4 times as long, quadratic work 16 times.
WORST_FACTOR: Final = 8.0
#: Times in seconds below this value are noise.
NOISE: Final = 0.0003
#: Duration of a call in seconds that confirms a suspicion. Until then, the text is made four times as long.
#: Work with a budget grows quadratically until the budget is spent, which takes less time than this.
PROOF: Final = 2.0
LARGEST: Final = 800_000
RUNS: Final = 3


@frozen
class Growth:
    """Seconds for a text of `length` characters. `factor` compares it with a quarter of the text."""

    length: int
    seconds: float
    factor: float


@contextmanager
def steady() -> Iterator[None]:
    """Switch off garbage collection during the block."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def seconds_of(parse: Parse, text: str) -> float:
    """Return the processor time of one call."""
    begin = time.thread_time_ns()
    parse(text)
    return (time.thread_time_ns() - begin) / 1e9


def find_growth(parse: Parse, pattern: Callable[[int], str], length: int) -> Growth | None:
    """Return the growth up to `length` characters if it exceeds the maximum. Return None if it is linear.

    A suspicion counts only after it has been checked with longer and longer texts.
    """
    whole = seconds_of(parse, pattern(length))
    if whole < NOISE:
        return None
    while True:
        quarter = pattern(length // 4)
        least = min(seconds_of(parse, quarter) for _ in range(RUNS))
        if whole <= WORST_FACTOR * least:
            return None
        # The growth is suspicious, but other processes may have disturbed the measurement.
        whole = min(seconds_of(parse, pattern(length)) for _ in range(RUNS))
        if whole <= WORST_FACTOR * least:
            return None
        if whole > PROOF or length >= LARGEST:
            return Growth(length, whole, whole / least)
        length *= 4
        whole = seconds_of(parse, pattern(length))
