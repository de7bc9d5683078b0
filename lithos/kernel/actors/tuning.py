"""Garbage collector and thread switching settings of a server process."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: Seconds between forced thread switches. Next to a busy Python thread, each hand-over of the GIL may take
#: this long.
SWITCH_INTERVAL: Final = 0.0005


@contextmanager
def tuned_process(switch_interval: float = SWITCH_INTERVAL) -> Iterator[None]:
    """Tune the garbage collector and the switch interval for a server, and restore both afterwards."""
    # Collection is off until the start is over (`_show_collector`): repeated scans of the many new objects
    # would take a fifth of the start's time.
    gc.disable()
    sys.setswitchinterval(switch_interval)
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
