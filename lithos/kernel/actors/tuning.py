"""Settings of Python's garbage collector and thread switching for a server process."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: Seconds. With a busy Python thread each hand-over of the GIL costs up to the switch interval.
SWITCH_INTERVAL: Final = 0.0005


@contextmanager
def tuned_process(switch_interval: float = SWITCH_INTERVAL) -> Iterator[None]:
    """Set the collector and the switch interval for a server, and restore them afterwards."""
    # Off until the start is over (`_show_collector`): scanning the objects that it creates again and
    # again would take a fifth of the time.
    gc.disable()
    sys.setswitchinterval(switch_interval)
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
