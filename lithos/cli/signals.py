"""SIGINT and SIGTERM from the first moment on: a stop that comes while modules load is no crash."""

from __future__ import annotations

import signal
from collections.abc import Sequence

STOPPING = (signal.SIGINT, signal.SIGTERM)


def remember_signals() -> Sequence[int]:
    """From now on the process does not die of `STOPPING` signals; those that came are in the list."""
    received: list[int] = []
    for number in STOPPING:
        signal.signal(number, lambda number, _: received.append(number))
    return received
