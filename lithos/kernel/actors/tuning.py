"""Garbage collector and thread switching settings of a server process."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: Seconds between forced thread switches. If another Python thread is busy, every hand-over of the GIL may
#: take this long.
SWITCH_INTERVAL: Final = 0.0005


@contextmanager
def tuned_process(switch_interval: float = SWITCH_INTERVAL) -> Iterator[None]:
    """Tune the garbage collector and the switch interval for a server. Restore both afterwards."""
    # Collection is off until the start is complete (`_show_collector`). Repeated scans of the many new
    # objects would take a fifth of the start time.
    gc.disable()
    sys.setswitchinterval(switch_interval)
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
