"""File system notifications (such as inotify), a probe that tests their arrival, and their coverage.

Every kind of notification leads to an examination of its path. The library reports neither an overflow of the
kernel's queue nor the files of a folder that was not watched yet. A listener must therefore also compare the
tree, after each start and periodically. Linux watches each folder separately and limits the watches of each
user (`fs.inotify.max_user_watches`, shared with editors and sync programs). Beyond that limit the library
silently leaves the rest of the tree unwatched. `WatchCoverage` counts the kernel's watches for this process.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import AsyncGenerator, Iterator

import trio
import watchfiles

from lithos.kernel.actors.threads import Blocking
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import TEMPORARY_PREFIX, TEMPORARY_SUFFIX

#: Number of successive checks that must find missing watches, because a new folder has no watch at first.
LOOKS = 3
_DESCRIPTORS = "/proc/self/fd"
_DETAILS = "/proc/self/fdinfo"


class WatchCoverage:
    """Compares the number of folders with the number of watches after folders may have been added."""

    def __init__(self, files: NoteFiles, blocking: Blocking) -> None:
        self._files = files
        self._blocking = blocking
        self._is_doubted = True
        self._short = 0

    @property
    def is_short(self) -> bool:
        """True while folders are known to have no watch."""
        return self._short >= LOOKS

    def doubt(self) -> None:
        """Make the next `shortage` count again, because folders may have been added."""
        self._is_doubted = True

    async def shortage(self) -> str | None:
        """Return the health warning about missing watches, or None."""
        if self._is_doubted:
            folders, watches = await self._blocking.run(self._count)
            self._is_doubted = False
            if watches is None or watches >= folders:
                self._short = 0
            else:
                self._short = min(self._short + 1, LOOKS)
                self._is_doubted = not self.is_short
        if not self.is_short:
            return None
        return (
            "notifications do not come from every folder, because the system's limit of watches is reached; "
            "raise fs.inotify.max_user_watches and start again"
        )

    def _count(self) -> tuple[int, int | None]:
        return sum(1 for _ in _folders(os.path.realpath(self._files.root))), count_watches()


def count_watches() -> int | None:
    """Return the number of inotify watches of this process, or None without `/proc`. Blocks."""
    try:
        descriptors = os.listdir(_DESCRIPTORS)
    except OSError:
        return None
    number = 0
    for descriptor in descriptors:
        try:
            if os.readlink(f"{_DESCRIPTORS}/{descriptor}") != "anon_inode:inotify":
                continue
            with open(f"{_DETAILS}/{descriptor}") as details:
                number += sum(line.startswith("inotify wd:") for line in details)
        except OSError:
            continue  # The descriptor was closed meanwhile.
    return number


def _folders(top: str) -> Iterator[str]:
    """Yield every readable folder, including dot-named folders, because they need watches too."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        yield folder


# The library logs every change at level info.
logging.getLogger("watchfiles").setLevel(logging.WARNING)

#: Exceptions of the library. Its own errors are RuntimeErrors, for example for names that are not UTF-8.
ListeningFailed = (OSError, RuntimeError)

PROBE_NAME = f"{TEMPORARY_PREFIX}probe{TEMPORARY_SUFFIX}"
PROBE_BOUND = 2.0
PROBE_PAUSE = 0.1

#: Times of the library in milliseconds: interval of its queue checks, maximum time it collects changes, and
#: interval at which it reports silence.
_STEP = 40
_GATHER = 200
_SILENCE = 1_000


class FolderWatch:
    """One watch on the folder until `stop` or an error. Paths are relative to the folder, with `/`."""

    def __init__(self, files: NoteFiles, blocking: Blocking) -> None:
        self._root = os.path.abspath(files.root)
        self._blocking = blocking
        self._stop = threading.Event()

    def stop(self) -> None:
        """End the watch within 50 ms. There is no other way to cancel it."""
        self._stop.set()

    async def notices(self) -> AsyncGenerator[set[str], None]:
        """Yield batches of touched paths.

        The first batch, which may be empty, signals that the watch is active.

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
                yield {
                    self._relative(path)
                    for change, path in noticed
                    if not (_is_passing(path) or _has_no_name(change, path))
                }
        finally:
            changes.close()

    def _relative(self, path: str) -> str:
        return path.removeprefix(self._root).lstrip(os.sep)


def _is_passing(path: str) -> bool:
    """Return whether a path is a temporary file of Lithos next to the notes, other than the probe's."""
    name = os.path.basename(path)
    return name.startswith(TEMPORARY_PREFIX) and name != PROBE_NAME


def _has_no_name(change: watchfiles.Change, path: str) -> bool:
    """Return whether a file was written without a name.

    The kernel reports a file without a name as `#` and its inode number.

    A real folder with such a name is reported as added or deleted.
    """
    name = os.path.basename(path)
    return change == watchfiles.Change.modified and name[0] == "#" and name[1:].isdecimal()


class Probe:
    """A dot-named probe file whose writes a working watch must report."""

    def __init__(self, files: NoteFiles, blocking: Blocking) -> None:
        self._path = os.path.join(files.root, PROBE_NAME)
        self._blocking = blocking
        self._seen = trio.Event()

    def look_for_it(self, noticed: set[str]) -> None:
        """Check a batch of notifications for the probe file."""
        if PROBE_NAME in noticed:
            self._seen.set()

    async def is_noticed(self) -> bool:
        """Write the file until it is reported. Return False `PROBE_BOUND` seconds after the first write.

        `PROBE_BOUND` does not include the wait for a turn among other calls. The removal of the file waits
        for its turn without a limit. Otherwise the file would be left behind when another start runs on a
        slow disk. Raises `OSError`.
        """
        try:
            await self._blocking.run(self._write)
            with trio.move_on_after(PROBE_BOUND):
                while not self._seen.is_set():
                    with trio.move_on_after(PROBE_PAUSE):
                        await self._seen.wait()
                        break
                    await self._blocking.run(self._write)
        finally:
            with trio.CancelScope(shield=True):
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
