"""A hook's promise: after any error it prints nothing, exits 0 and ends within a second.

A client must not suffer from a server that is not there (docs/spec/integration.md §2).
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Final

from lithos.server.command.streams import make_printable

#: Seconds after which the process ends, whatever it waits for; Python itself takes another tenth.
DEADLINE: Final = 0.7
#: Tokens that a hook prints at most.
HOOK_BUDGET: Final = 800
#: UTF-8 bytes that are a token at least.
TOKEN_BYTES: Final = 4


class NoHookOutput(Exception):
    """There is no server that answers as it should, or nothing to say."""


#: Errors of a server, a file or a configuration that is missing, unreadable or malformed.
FAILURES: Final = (
    *(NoHookOutput, OSError, RecursionError),
    *(ValueError, TypeError, LookupError, AttributeError),
)


def promise_silence() -> None:
    """From now on the process ends with 0 at the deadline, also in a call that blocks, and at a bug."""
    sys.excepthook = lambda *_: os._exit(0)
    watchdog = threading.Timer(DEADLINE, os._exit, (0,))
    watchdog.daemon = True
    watchdog.start()


def printable(text: str) -> str:
    """The lines of a text, without what would steer a terminal."""
    return "\n".join(map(make_printable, text.rstrip("\n").split("\n")))


def print_text(text: str) -> None:
    """Print in one write. Raises `OSError` if the output is closed."""
    encoding = sys.stdout.encoding or "utf-8"
    try:
        os.write(1, f"{text}\n".encode(encoding, "backslashreplace"))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise
