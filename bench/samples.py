"""What a soak has seen."""

from __future__ import annotations

import time
from collections import Counter

from attrs import Factory, define


@define
class Samples:
    """(Seconds since the begin, seconds it took) of calls, (seconds, MiB) of memory.

    `tools` is what was done how often.
    """

    begin: float
    calls: list[tuple[float, float]] = Factory(list)
    memory: list[tuple[float, float]] = Factory(list)
    tools: Counter[str] = Factory(Counter)
    failures: list[str] = Factory(list)

    def note(self, what: str, begun: float) -> None:
        """A call that began at `begun` (`perf_counter`) and is over now."""
        ended = time.perf_counter()
        self.calls.append((ended - self.begin, ended - begun))
        self.tools[what] += 1
