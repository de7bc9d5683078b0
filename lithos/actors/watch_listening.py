"""Listening to the file system's own notifications, and the test whether it sends any.

Which kind of event it was is not asked: the path is looked at. The library says nothing when the
kernel's queue overflows and nothing of files that were in a folder before it was watched, so whoever
listens has to compare the tree as well, after each begin and every now and then.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import AsyncGenerator

import trio
import watchfiles

from lithos.actors.blocking import Blocking
from lithos.stores.files import TEMPORARY_PREFIX, TEMPORARY_SUFFIX, NoteFiles

# It tells of every change at level info.
logging.getLogger("watchfiles").setLevel(logging.WARNING)

#: What the library raises: its own errors are RuntimeErrors, one of them for names that are no UTF-8.
ListeningFailed = (OSError, RuntimeError)

PROBE_NAME = f"{TEMPORARY_PREFIX}probe{TEMPORARY_SUFFIX}"
PROBE_BOUND = 2.0
PROBE_PAUSE = 0.1

#: Milliseconds: how often the library looks into its queue, gathers at most, reports silence.
_STEP = 40
_GATHER = 200
_SILENCE = 1_000


class Listening:
    """One watch on the folder, until `stop` or an error; paths are relative to it, with `/`."""

    def __init__(self, files: NoteFiles, blocking: Blocking) -> None:
        self._root = os.path.abspath(files.root)
        self._blocking = blocking
        self._stop = threading.Event()

    def stop(self) -> None:
        """End the watch within a twentieth of a second; also the only way to cancel it."""
        self._stop.set()

    async def notices(self) -> AsyncGenerator[set[str], None]:
        """Touched paths; the first set, empty or not, tells that the watch is armed.

        Raises `ListeningFailed`.
        """
        changes = watchfiles.watch(
            self._root,
            watch_filter=None,
            debounce=_GATHER,
            step=_STEP,
            stop_event=self._stop,
            rust_timeout=_SILENCE,
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=False,
            ignore_permission_denied=True,
        )
        try:
            while (noticed := await self._blocking.run(lambda: next(changes, None))) is not None:
                yield {self._relative(path) for _, path in noticed}
        finally:
            changes.close()

    def _relative(self, path: str) -> str:
        return path.removeprefix(self._root).lstrip(os.sep)


class Probe:
    """A dot-named file that a working watch must notice."""

    def __init__(self, files: NoteFiles, blocking: Blocking) -> None:
        self._path = os.path.join(files.root, PROBE_NAME)
        self._blocking = blocking
        self._seen = trio.Event()

    def look_for_it(self, noticed: set[str]) -> None:
        """Tell the probe what was noticed."""
        if PROBE_NAME in noticed:
            self._seen.set()

    async def is_noticed(self) -> bool:
        """Write the file again and again for at most `PROBE_BOUND` seconds. Raises `OSError`."""
        try:
            with trio.move_on_after(PROBE_BOUND):
                while not self._seen.is_set():
                    await self._blocking.run(self._write)
                    with trio.move_on_after(PROBE_PAUSE):
                        await self._seen.wait()
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + PROBE_BOUND):
                await self._blocking.run(self._remove)
        return self._seen.is_set()

    def _write(self) -> None:
        with open(self._path, "ab") as file:
            file.write(b"\n")

    def _remove(self) -> None:
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            return
