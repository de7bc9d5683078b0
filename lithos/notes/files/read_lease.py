"""A note file opened under a read lease, if supported.

The lease shows whether any program writes to the file. Opening the file blocks.

A lease is granted only while no program has the file open for writing. While the lease exists, a program that
opens the file for writing waits until the descriptor is closed. So displaced files are unlinked only when no
program can be writing to them (`settle`). After a crash, they are recovered.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection
from contextlib import suppress

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

#: Seconds to wait for a program that opened the file while it was being unlinked, until the program has
#: written and closed it.
_LAST_PATIENCE = 2.0


#: Callback that stores the bytes of a kept file durably elsewhere. Raises `OSError`.
SaveBytes = Callable[[Kept, bytes], None]


def settle(calls: SystemCalls, kept: Kept, save: SaveBytes, *, leases: bool) -> None:
    """Unlink a kept file. Unknown bytes, which another program wrote, are saved first.

    Raises `FileBusy` while a program writes to the file; retry later. Raises `FileNotFoundError` if the file
    was deleted or moved.
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
        watch.let_write(_LAST_PATIENCE)  # a program opened the file just now, by a lookup from a second ago
        last = watch.read()
        if last.digest != source.digest and last.digest not in kept.known:
            save(kept, last.data)


def recover_folder(
    calls: SystemCalls, folder: str, names: Collection[str], place: PrivateFolder | None = None
) -> tuple[list[Kept], int]:
    """Recover one folder after a crash. Return the files to settle, and the number of other files cleaned up.

    If the folder is the `place`, the names of the private files identify their notes. Otherwise, the files
    are next to their notes.

    Temporary files are removed, and files that were set aside get their names back. Call this before any
    other change.
    """
    kept: list[Kept] = []
    tidied = 0
    for name in sorted(names):
        path = os.path.join(folder, name)
        with suppress(OSError):  # a file that cannot be removed stays, because it never counts as a note
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
        # If the note has another file now, a file that was set aside may be the only copy of its text.
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


#: Seconds since the last change after which a file counts as completely saved. Empty files take longer,
#: because many programs truncate a file before they write it.
QUIET, EMPTY_QUIET = 0.1, 1.0
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW


class Watch:
    """A regular file that is open for reading. While it is open, its inode number is not reused.

    Raises `FileBusy` if the file is open for writing, and `OSError`. Without `leases`, only the file's times
    show changes.
    """

    def __init__(self, calls: SystemCalls, path: str, *, leases: bool) -> None:
        self._calls = calls
        self._path = path
        try:  # Without O_NONBLOCK, this would wait for another program's lease, or for a pipe.
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
        except BlockingIOError:  # the file is open or mapped for writing
            raise FileBusy(self._path) from None
        except OSError:  # the file belongs to another user, or its file system does not support leases
            return False
        return True

    def read(self) -> ReadFile:
        """Return the bytes of the file, and its state before they were read."""
        self._status = self._calls.fstat(self.descriptor)
        return ReadFile(self._calls.read(self.descriptor), state_of(self._status))

    def is_untouched(self) -> bool:
        """Return whether no program wants to write, that is, the lease is unbroken.

        The result is always True without a lease.
        """
        return not self.is_leased or self._calls.is_leased(self.descriptor)

    def is_quiet(self) -> bool:
        """Return whether the last change is old enough that the file is completely saved."""
        status = self._status
        # Without a lease, the status time counts too, because a program can set the modification time back.
        changed = status.st_mtime if self.is_leased else max(status.st_mtime, status.st_ctime)
        return abs(self._calls.now() - changed) >= (QUIET if status.st_size else EMPTY_QUIET)

    def is_still(self, path: str, digest: str) -> bool:
        """Return whether `path` is still this file, and its bytes still have this digest."""
        if not is_same(self._calls, self.descriptor, path):
            return False
        if self.is_leased:
            return self.is_untouched()  # no program was able to write
        return digest_of(self._calls.read(self.descriptor)) == digest

    def let_write(self, patience: float) -> None:
        """Release the lease for programs waiting in open().

        After that, wait up to `patience` seconds until these programs close the file.
        """
        self._calls.end_lease(self.descriptor)
        for _ in range(round(patience / 0.01)):
            self._calls.sleep(0.01)
            with suppress(FileBusy):
                self._take_lease()
                return


def check_regular(status: os.stat_result, path: str) -> None:
    """Raise `OSError` if this is not a regular file."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "Not a regular file", path)


def is_same(calls: SystemCalls, descriptor: int, path: str) -> bool:
    """Return whether the path leads to the open file."""
    with suppress(FileNotFoundError):
        return os.path.samestat(calls.fstat(descriptor), calls.lstat(path))
    return False
