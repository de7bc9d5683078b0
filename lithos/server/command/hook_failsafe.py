"""Limits for hook commands. After any error they print nothing and exit with 0. They end within a second.

A client must also work if no server is running (docs/spec/integration.md §2).
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from typing import Final

from lithos.server.command.streams import make_printable

#: Seconds after which the process ends, even while it waits for an answer. Python needs another 0.1 s.
DEADLINE: Final = 0.7
#: Maximum number of tokens that a hook prints.
HOOK_BUDGET: Final = 800
#: Minimum number of UTF-8 bytes that count as one token.
TOKEN_BYTES: Final = 4


class NoHookOutput(Exception):
    """Raised if no server answers correctly, or if the hook has no text to print."""


#: Exceptions for servers, files and configurations that are missing, unreadable or malformed.
FAILURES: Final = (
    *(NoHookOutput, OSError, RecursionError),
    *(ValueError, TypeError, LookupError, AttributeError),
)


#: Time at which this process ends (in the time of `time.monotonic`).
_ends_at = [math.inf]  # bounded: one time


def promise_silence() -> None:
    """Make the process end with exit code 0 at the deadline, even after a bug or in a blocking call."""
    _ends_at[0] = time.monotonic() + DEADLINE
    sys.excepthook = lambda *_: os._exit(0)
    watchdog = threading.Timer(DEADLINE, os._exit, (0,))
    watchdog.daemon = True
    watchdog.start()


def deadline_after(seconds: float) -> float:
    """Return the time in `seconds`, or the end of this process if that is earlier."""
    return min(time.monotonic() + seconds, _ends_at[0])


def printable(text: str) -> str:
    """Return the lines of a text without the characters that could control a terminal."""
    return "\n".join(map(make_printable, text.rstrip("\n").split("\n")))


def print_text(text: str) -> None:
    """Print a text in one write. Raises `OSError` if the output is closed."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        os.write(1, f"{text}\n".encode(encoding, "backslashreplace"))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise
