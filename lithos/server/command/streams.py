"""Standard streams that are closed, full (non-blocking writes) or without a reader; early signal handling.

SIGINT and SIGTERM are caught from the first moment on: a stop while modules load is not a crash.
Texts are made safe to print here, since this loads at once, for commands that must end at once.
"""

from __future__ import annotations

import io
import os
import select
import signal
import sys
from collections.abc import Sequence
from typing import Final


def make_printable(text: str) -> str:
    """The text with what could steer a terminal written as an escape sequence."""
    return "".join(
        char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode()
        for char in text
    )


STOPPING = (signal.SIGINT, signal.SIGTERM)

#: The parent process, noted at once: if it ends during the start, `getppid` returns another one.
PARENT = os.getppid()


def remember_signals() -> Sequence[int]:
    """From now on the process does not die of `STOPPING` signals; those that came are in the list."""
    received: list[int] = []
    for number in STOPPING:
        signal.signal(number, lambda number, _: received.append(number))
    return received


#: A pipe that takes anything takes this much without blocking (PIPE_BUF; POSIX promises 512).
PIECE: Final = 512
#: How long a reader may pause in the middle of a text, in milliseconds.
PATIENCE_MS: Final = 50


def hold_standard_streams() -> None:
    """Open each closed file descriptor from 0 to 2, so that no database ever gets such a number."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


class LossyStream(io.TextIOBase):
    """Text to a descriptor whose reader may be slow: text that would block is dropped."""

    encoding = "utf-8"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending = ""
        self._lost = 0
        self._is_torn = False

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        """Take text; whole lines are written at once. Raises `OSError` when the reader has gone."""
        self._pending += text
        if "\n" in text:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Write what fits of what was taken; the rest is lost, and the next text that fits says so."""
        text, self._pending = self._pending, ""
        if not text:
            return
        line_end = "\n" if self._is_torn else ""
        notice = (
            f"(lithos: {self._lost} lines were lost because the output was not read)\n" if self._lost else ""
        )
        rest = memoryview(f"{line_end}{notice}{text}".encode("utf-8", "backslashreplace"))
        patience = 0
        while rest and self._takes(patience):
            rest = rest[os.write(self._descriptor, rest[:PIECE]) :]
            patience = PATIENCE_MS
        if patience:
            self._lost, self._is_torn = 0, bool(rest)
        self._lost += bool(rest)

    def _takes(self, patience: int) -> bool:
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLOUT)
        return bool(waiting.poll(patience))
