"""A `lithos` program that counts the work of its event loop.

Run it with `python -m bench.counting FD serve …`.

The program counts Python and C function calls on the event loop's thread, jobs that the loop passes to other
threads, file syncs and database commits. It works with any revision of Lithos. When the loop is idle, the
program answers each byte on the socket FD with one JSON line, `Counted`.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import CodeType, FrameType
from typing import Any, Final

import apsw
import trio
import trio.lowlevel
from attrs import asdict, frozen

#: Seconds between two checks whether the loop is idle, and number of consecutive checks that must find it
#: idle.
PAUSE: Final = 0.001
LOOKS: Final = 3


@frozen
class Counted:
    """Totals since the program started. `syncs` counts file syncs; SQLite syncs itself at a commit."""

    steps: int
    hand_overs: int
    syncs: int
    commits: int


class _Waiting(trio.abc.Instrument):
    """A record of whether the loop is waiting for events, and how often it has started to wait."""

    def __init__(self) -> None:
        self.is_waiting = False
        self.turns = 0

    def before_io_wait(self, timeout: float) -> None:
        self.turns += 1
        self.is_waiting = timeout > 0

    def after_io_wait(self, timeout: float) -> None:
        self.is_waiting = False


class _Counter:
    """A counter of calls on the thread that created the counter. The event loop then runs on this thread."""

    def __init__(self) -> None:
        self._waiting = _Waiting()
        self._steps = self._hand_overs = 0
        self._syncs: list[None] = []  # Any thread may append to this list, and no entry is ever lost.
        self._commits: list[None] = []

    def install(self) -> None:
        """Start counting. Call this before `lithos` is imported."""
        trio.run = functools.partial(trio.run, instruments=[self._waiting])  # type: ignore[assignment]
        for name in ("fsync", "fdatasync"):
            setattr(os, name, self._counted(getattr(os, name), self._syncs))
        apsw.connection_hooks.append(
            lambda connection: connection.set_commit_hook(self._note_commit, id="counting")
        )
        own: set[CodeType] = {
            each.__code__ for each in (_Waiting.before_io_wait, _Waiting.after_io_wait, _Counter._note_commit)
        }
        jobs: set[CodeType] = {
            trio.lowlevel.start_thread_soon.__code__, ThreadPoolExecutor.submit.__code__,
        }  # fmt: skip

        def count(frame: FrameType, event: str, _: object) -> None:
            if event == "c_call":
                self._steps += 1
            elif event == "call" and frame.f_code not in own:
                self._steps += 1
                if frame.f_code in jobs:
                    self._hand_overs += 1

        sys.setprofile(count)

    def _counted(self, call: Callable[..., Any], counter: list[None]) -> Callable[..., Any]:
        def counted(*given: Any) -> Any:
            counter.append(None)
            return call(*given)

        return counted

    def _note_commit(self) -> bool:
        self._commits.append(None)
        return False  # let the commit continue

    def answer(self, control: socket.socket) -> None:
        """Answer each byte until the socket is closed. Runs in its own thread."""
        while control.recv(1):
            self._until_waiting()
            told = Counted(self._steps, self._hand_overs, len(self._syncs), len(self._commits))
            control.sendall(json.dumps(asdict(told)).encode() + b"\n")

    def _until_waiting(self) -> None:
        looks, turns = 0, -1
        while looks < LOOKS:
            is_same = self._waiting.is_waiting and self._waiting.turns == turns
            looks, turns = looks + 1 if is_same else 0, self._waiting.turns
            time.sleep(PAUSE)


def main() -> int:
    descriptor, *arguments = sys.argv[1:]
    counter = _Counter()
    control = socket.socket(fileno=int(descriptor))
    threading.Thread(target=counter.answer, args=[control], daemon=True).start()
    counter.install()
    from lithos.app.main import main as lithos  # noqa: PLC0415 - after the counters

    sys.argv[1:] = arguments
    return lithos()


if __name__ == "__main__":
    sys.exit(main())
