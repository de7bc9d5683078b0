"""SIGINT and SIGTERM from the first moment on: a stop that comes while modules load is no crash."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

STOPPING = (signal.SIGINT, signal.SIGTERM)

#: Who started this process, noted at once: one that dies during the start leaves another in its place.
PARENT = os.getppid()


def remember_signals() -> Sequence[int]:
    """From now on the process does not die of `STOPPING` signals; those that came are in the list."""
    received: list[int] = []
    for number in STOPPING:
        signal.signal(number, lambda number, _: received.append(number))
    return received
