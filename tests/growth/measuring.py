"""Whether the time of a call grows with its text, or with the square of it.

Processor time of this thread is measured, so that other processes do not count.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from attrs import frozen

Parse = Callable[[str], object]

#: From n to 4n: linear work takes 4 times as long, quadratic work 16 times.
WORST_FACTOR: Final = 8.0
#: Seconds below which a time is noise.
NOISE: Final = 0.0003
#: Texts grow fourfold until a suspicion is confirmed at more than this many seconds, or dispelled: work
#: that has a budget grows by the square until it is spent, which takes a part of this.
PROOF: Final = 2.0
LARGEST: Final = 800_000
RUNS: Final = 3


@frozen
class Growth:
    """How long the text of `length` took, in seconds, and how many times that of a quarter."""

    length: int
    seconds: float
    factor: float


@contextmanager
def steady() -> Iterator[None]:
    """No garbage collection in between."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def seconds_of(parse: Parse, text: str) -> float:
    """Processor time of one call."""
    begin = time.thread_time_ns()
    parse(text)
    return (time.thread_time_ns() - begin) / 1e9


def find_growth(parse: Parse, pattern: Callable[[int], str], length: int) -> Growth | None:
    """The growth to `length` characters when it is worse than allowed, None when it is linear.

    A suspicion is looked into with ever longer texts before it counts.
    """
    whole = seconds_of(parse, pattern(length))
    if whole < NOISE:
        return None
    while True:
        quarter = pattern(length // 4)
        least = min(seconds_of(parse, quarter) for _ in range(RUNS))
        if whole <= WORST_FACTOR * least:
            return None
        # Suspicious: other processes may have disturbed the measurement.
        whole = min(seconds_of(parse, pattern(length)) for _ in range(RUNS))
        if whole <= WORST_FACTOR * least:
            return None
        if whole > PROOF or length >= LARGEST:
            return Growth(length, whole, whole / least)
        length *= 4
        whole = seconds_of(parse, pattern(length))
