"""A note file that is opened under a read lease if the file system supports leases.

The lease shows whether any program writes to the file. Opening the file blocks.

A lease is granted only if no program has the file open for writing. If another program opens the file for
writing while the lease exists, that program waits until the descriptor is closed. So `settle` unlinks a
displaced file only if no program can be writing to it. After a crash, `recover_folder` finds the displaced
files.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection
from contextlib import suppress

from lithos.kernel.operating_system import NO_FOLLOW, NO_WAIT
from lithos.notes.files.system_calls import UNSUPPORTED, SystemCalls
from lithos.notes.files.values import (
    TEMPORARY_PREFIX,
    FileBusy,
    Kept,
    PrivateFolder,
    ReadFile,
    digest_of,
    is_temporary,
    parse_name,
    state_of,
)

#: Maximum time in seconds to wait for a program that opened the file while Lithos unlinked it. The program
#: must write and close the file in this time.
_LAST_PATIENCE = 2.0


#: Callback that stores the bytes of a displaced file durably elsewhere. It raises `OSError` on failure.
SaveBytes = Callable[[Kept, bytes], None]


def settle(calls: SystemCalls, kept: Kept, save: SaveBytes, *, leases: bool) -> None:
    """Unlink a displaced file. Unknown bytes, which another program wrote, are saved first.

    Raise `FileBusy` while a program writes to the file, so that the caller retries later. Raise
    `FileNotFoundError` if the file was deleted or moved.
    """
    with Watch(calls, kept.path, leases=leases) as watch:
        source = watch.read()
        if source.digest not in kept.known:
            if not watch.is_quiet():
                raise FileBusy(kept.path)
            save(kept, source.data)
        if not watch.is_still(kept.path, source.digest):
            raise FileBusy(kept.path)
        calls.unlink(kept.path)
        if watch.is_untouched():
            return
        watch.let_write(_LAST_PATIENCE)  # a program has just opened the file, by an earlier path lookup
        last = watch.read()
        if last.digest != source.digest and last.digest not in kept.known:
            save(kept, last.data)


def recover_folder(
    calls: SystemCalls, folder: str, names: Collection[str], place: PrivateFolder | None = None
) -> tuple[list[Kept], int]:
    """Recover one folder after a crash.

    Return the files to settle, and the number of other files that were handled.

    If the folder is the `place`, the names of its private files identify their notes. Otherwise, the private
    files are next to their notes.

    Temporary files are removed. Aside files are renamed back to their notes. Call this before any other
    change.
    """
    kept: list[Kept] = []
    tidied = 0
    for name in sorted(names):
        path = os.path.join(folder, name)
        with suppress(OSError):  # a file that cannot be removed does no harm, because it is never a note
            if is_temporary(name):
                calls.unlink(path)
                tidied += 1
                continue
        found = parse_name(name) if name.startswith(TEMPORARY_PREFIX) else None
        if found is None:
            continue
        note = os.path.join(folder, found.note or "unknown.md")
        if place is not None and found.note is not None:
            note = place.note_of(found.note)
        if found.kind == "aside" and found.note is not None and _go_back(calls, path, note):
            tidied += 1
            continue
        # If the note has a new file, the aside file may be the only copy of its text.
        known = found.known if found.kind == "swap" else ()
        kept.append(Kept(path, note, known, is_leased=False))
    return kept, tidied


def _go_back(calls: SystemCalls, path: str, target: str) -> bool:
    """Rename an aside file back to its note without overwriting. Return whether this succeeded."""
    try:
        calls.rename_new(path, target)
    except FileExistsError:
        return False
    except OSError as failure:
        if failure.errno not in UNSUPPORTED:
            return False
        with suppress(OSError):
            calls.link(path, target)
            calls.unlink(path)
            return True
        return False
    return True


#: Minimum time in seconds since the last change before a file counts as completely saved. Empty files need a
#: longer time, because many programs truncate a file before they write it.
QUIET, EMPTY_QUIET = 0.1, 1.0
_READ = os.O_RDONLY | NO_WAIT | NO_FOLLOW


class Watch:
    """A regular file that is open for reading. While the file is open, its inode number is not reused.

    Raise `FileBusy` if a program has the file open for writing, and `OSError` for other failures. Without
    `leases`, only the times of the file show changes.
    """

    def __init__(self, calls: SystemCalls, path: str, *, leases: bool) -> None:
        self._calls = calls
        self._path = path
        try:  # Without O_NONBLOCK, opening would wait for another program's lease or for a pipe.
            self.descriptor = calls.open(path, _READ)
        except BlockingIOError:
            raise FileBusy(path) from None
        try:
            self._status = calls.fstat(self.descriptor)
            check_regular(self._status, path)
            self.is_leased = leases and self._take_lease()
        except BaseException:
            calls.close(self.descriptor)
            raise

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *failure: object) -> None:
        # Closing releases the lease, so that programs waiting in open() continue.
        self._calls.close(self.descriptor)

    def _take_lease(self) -> bool:
        try:
            self._calls.lease(self.descriptor)
        except BlockingIOError:  # a program has the file open or mapped for writing
            raise FileBusy(self._path) from None
        except OSError:  # another user owns the file, or leases are not supported
            return False
        return True

    def read(self) -> ReadFile:
        """Return the bytes of the file, and its state before the read."""
        self._status = self._calls.fstat(self.descriptor)
        return ReadFile(self._calls.read(self.descriptor), state_of(self._status))

    def is_untouched(self) -> bool:
        """Return whether the lease is unbroken, that is, no program is waiting to write.

        The result is always True without a lease.
        """
        return not self.is_leased or self._calls.is_leased(self.descriptor)

    def is_quiet(self) -> bool:
        """Return whether the file counts as completely saved, because its last change is long enough ago."""
        status = self._status
        # Without a lease, the ctime counts too, because a program can set the mtime back.
        changed = status.st_mtime if self.is_leased else max(status.st_mtime, status.st_ctime)
        return abs(self._calls.now() - changed) >= (QUIET if status.st_size else EMPTY_QUIET)

    def is_still(self, path: str, digest: str) -> bool:
        """Return whether `path` is still this file, with the same digest."""
        if not is_same(self._calls, self.descriptor, path):
            return False
        if self.is_leased:
            return self.is_untouched()  # if the lease is unbroken, no program could write
        return digest_of(self._calls.read(self.descriptor)) == digest

    def let_write(self, patience: float) -> None:
        """Release the lease for programs waiting in open().

        After releasing the lease, wait up to `patience` seconds until the waiting programs have closed the
        file.
        """
        self._calls.end_lease(self.descriptor)
        for _ in range(round(patience / 0.01)):
            self._calls.sleep(0.01)
            with suppress(FileBusy):
                self._take_lease()
                return


def check_regular(status: os.stat_result, path: str) -> None:
    """Raise `IsADirectoryError` for a folder, and `FileNotFoundError` for any other file that is not
    regular.
    """
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "Not a regular file", path)


def is_same(calls: SystemCalls, descriptor: int, path: str) -> bool:
    """Return whether the path leads to the open file."""
    with suppress(FileNotFoundError):
        return os.path.samestat(calls.fstat(descriptor), calls.lstat(path))
    return False
