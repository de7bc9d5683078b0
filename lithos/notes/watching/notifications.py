"""File system notifications (such as inotify), a test of whether they arrive, and a check of their coverage.

Every notification leads to an examination of its path, whatever its kind. The library does not report that
the kernel's queue overflowed, and it does not report files in a folder that was not watched yet. A listener
must therefore also compare the tree, after each start and periodically. Linux watches each folder separately
and limits the number of watches per user (`fs.inotify.max_user_watches`), which editors and synchronisation
programs share. Beyond this limit, the library leaves the rest of the tree unwatched without an error.
`WatchCoverage` counts the kernel's watches for this process.
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

#: Number of successive checks that must find missing watches. A new folder has no watch at first, so one
#: check is not enough.
LOOKS = 3
_DESCRIPTORS = "/proc/self/fd"
_DETAILS = "/proc/self/fdinfo"


class WatchCoverage:
    """Comparison of the number of folders with the number of watches, when folders may have been added."""

    def __init__(self, files: NoteFiles, blocking: Blocking) -> None:
        self._files = files
        self._blocking = blocking
        self._is_doubted = True
        self._short = 0

    @property
    def is_short(self) -> bool:
        """True if some folders are known to be unwatched."""
        return self._short >= LOOKS

    def doubt(self) -> None:
        """Request a new count for the next call of `shortage`, because folders may have been added."""
        self._is_doubted = True

    async def shortage(self) -> str | None:
        """Return the health warning about missing watches, or None if all folders are watched."""
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
            "notifications from some folders are missing, because the system's limit of watches "
            "is reached; raise fs.inotify.max_user_watches and start Lithos again"
        )

    def _count(self) -> tuple[int, int | None]:
        tops = [os.path.realpath(folder) for folder in self._files.watched_folders()]
        return sum(1 for top in tops for _ in _folders(top)), count_watches()


def count_watches() -> int | None:
    """Return the number of inotify watches of this process. Without `/proc`, return None. Blocks."""
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
            continue  # The descriptor was closed in the meantime.
    return number


def _folders(top: str) -> Iterator[str]:
    """Yield all readable folders. Folders whose names start with a dot need a watch too."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        yield folder


# The library logs every change at level info, so this raises its log level.
logging.getLogger("watchfiles").setLevel(logging.WARNING)

#: Exceptions that the library raises. Its own errors are RuntimeErrors, for example for names that are not
#: UTF-8.
ListeningFailed = (OSError, RuntimeError)

PROBE_NAME = f"{TEMPORARY_PREFIX}probe{TEMPORARY_SUFFIX}"
PROBE_BOUND = 2.0
PROBE_PAUSE = 0.1

#: Times of the library in milliseconds: interval between checks of its queue, maximum time to collect
#: changes, and interval between reports that nothing changed.
_STEP = 40
_GATHER = 200
_SILENCE = 1_000


class FolderWatch:
    """A watch on the folder and the linked folders, which ends with `stop` or an error.

    Paths are note paths, with `/`.
    """

    def __init__(self, files: NoteFiles, blocking: Blocking) -> None:
        self._files = files
        self._root = os.path.abspath(files.root)
        #: Linked folders with the beginning of their note paths.
        self._linked: dict[str, str] = {}
        self._blocking = blocking
        self._stop = threading.Event()

    def stop(self) -> None:
        """End the watch within 50 ms. The watch cannot be cancelled in another way."""
        self._stop.set()

    async def notices(self) -> AsyncGenerator[set[str], None]:
        """Yield batches of touched paths.

        The first batch of paths may be empty. This batch signals that the watch is active.

        Raises `ListeningFailed` if the library fails.
        """
        watched = await self._blocking.run(self._files.watched_folders)
        self._linked = {folder: prefix for folder, prefix in watched.items() if prefix}
        changes = watchfiles.watch(
            self._root,
            *self._linked,
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
        for folder, prefix in self._linked.items():
            if path.startswith(folder + os.sep):
                return prefix + path[len(folder) + 1 :]
        return path.removeprefix(self._root).lstrip(os.sep)


def _is_passing(path: str) -> bool:
    """Return whether a path is a temporary file of Lithos. The file of the probe does not count."""
    name = os.path.basename(path)
    return name.startswith(TEMPORARY_PREFIX) and name != PROBE_NAME


def _has_no_name(change: watchfiles.Change, path: str) -> bool:
    """Return whether a notification is about a written file that has no name.

    For such a file, the kernel reports `#` and the inode number.

    A folder that really has such a name is reported as added or deleted.
    """
    name = os.path.basename(path)
    return change == watchfiles.Change.modified and name[0] == "#" and name[1:].isdecimal()


class Probe:
    """A probe file whose name starts with a dot.

    If notifications work, they report each write to the file.
    """

    def __init__(self, files: NoteFiles, blocking: Blocking) -> None:
        self._path = os.path.join(files.root, PROBE_NAME)
        self._blocking = blocking
        self._seen = trio.Event()

    def look_for_it(self, noticed: set[str]) -> None:
        """Check whether a batch of notifications contains the probe file."""
        if PROBE_NAME in noticed:
            self._seen.set()

    async def is_noticed(self) -> bool:
        """Write the file until a notification reports it. Return False after `PROBE_BOUND` seconds.

        The time starts with the first write, so waiting for a free thread does not count. The removal of the
        file waits for a free thread without a time limit. Otherwise the file could remain if another start
        runs on a slow disk. Raises `OSError`.
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
