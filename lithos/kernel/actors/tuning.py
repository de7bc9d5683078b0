"""The collector and the switch of Python's threads, as a process that serves needs them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: With a busy Python thread each hand-over of the interpreter costs up to the switch interval.
SWITCH_INTERVAL: Final = 0.0005


@contextmanager
def tuned_process(switch_interval: float = SWITCH_INTERVAL) -> Iterator[None]:
    """The collector and the switch interval as a server needs them."""
    # Off until the start is over (`_show_collector`): what it makes stays, and looking at that again and
    # again would take a fifth of the time.
    gc.disable()
    sys.setswitchinterval(switch_interval)
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
