"""Limits for hook commands: after any error they print nothing, exit 0 and end within a second.

A client must not suffer if no server is running (docs/spec/integration.md §2).
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Final

from lithos.server.command.streams import make_printable

#: Seconds after which the process ends, even if it waits for an answer. Python needs another tenth of a
#: second.
DEADLINE: Final = 0.7
#: Maximum number of tokens that a hook prints.
HOOK_BUDGET: Final = 800
#: Minimum number of UTF-8 bytes that count as one token.
TOKEN_BYTES: Final = 4


class NoHookOutput(Exception):
    """No server answers correctly, or the hook has no text to print."""


#: Errors for missing, unreadable or malformed servers, files and configurations.
FAILURES: Final = (
    *(NoHookOutput, OSError, RecursionError),
    *(ValueError, TypeError, LookupError, AttributeError),
)


def promise_silence() -> None:
    """Make the process end with exit code 0 at the deadline, even in a blocking call or after a bug."""
    sys.excepthook = lambda *_: os._exit(0)
    watchdog = threading.Timer(DEADLINE, os._exit, (0,))
    watchdog.daemon = True
    watchdog.start()


def printable(text: str) -> str:
    """Return the lines of a text without characters that could control a terminal."""
    return "\n".join(map(make_printable, text.rstrip("\n").split("\n")))


def print_text(text: str) -> None:
    """Print in one write. Raises `OSError` if the output is closed."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        os.write(1, f"{text}\n".encode(encoding, "backslashreplace"))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise
