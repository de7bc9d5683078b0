"""A time limit for linear functions.

The limit is generous. It is in CPU time of this process, so other processes do not affect the limit.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cpu_bound(seconds: float) -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise AssertionError(f"not done after {seconds} s of CPU")

    old = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, old)
