"""Handling of standard streams that are closed, full or unread, and of signals during the start.

SIGINT and SIGTERM are caught from the first moment, so a stop during the imports is not a crash.
`make_printable` is in this module because the module loads fast, as hook commands require.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

from lithos.kernel.operating_system import takes_output


def make_printable(text: str) -> str:
    """Return the text with escape sequences in place of terminal control characters."""
    return "".join(
        char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode()
        for char in text
    )


STOPPING = (signal.SIGINT, signal.SIGTERM)

#: Parent process at the start. After the parent has ended, `getppid` returns another process.
PARENT = os.getppid()


def remember_signals() -> Sequence[int]:
    """Collect all later `STOPPING` signals in the returned list. They no longer end the process."""
    received: list[int] = []
    for number in STOPPING:
        signal.signal(number, lambda number, _: received.append(number))
    return received


#: Number of bytes that a writable pipe always accepts without blocking. POSIX guarantees 512 (PIPE_BUF).
PIECE: Final = 512
#: Maximum pause of a reader in the middle of a text, in milliseconds.
PATIENCE_MS: Final = 50


def hold_standard_streams() -> None:
    """Open the closed file descriptors from 0 to 2, so that no database gets one of these numbers."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is that of the closed descriptor
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


class LossyStream(io.TextIOBase):
    """Text stream that drops text instead of blocking if its reader is slow."""

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
        """Add text to the stream.

        A complete line is written at once. Raises `OSError` if the output is closed.
        """
        self._pending += text
        if "\n" in text:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Write as much text as the reader accepts.

        The rest is dropped, and a later line reports the loss.
        """
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
        return takes_output(self._descriptor, patience)
