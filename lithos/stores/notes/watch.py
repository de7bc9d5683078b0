"""An open note file under a read lease, where supported: whether any program writes to it. It blocks.

A lease is granted only while no program has the file open for writing; one that wants to open it so while the
lease holds waits until the descriptor is closed.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from lithos.stores.notes.system_calls import SystemCalls
from lithos.stores.notes.values import FileBusy, ReadFile, digest_of, state_of

#: Quiet period: seconds since its last change after which a file is not taken for half saved; longer for an
#: empty one, since many programs truncate a file first and write it then.
QUIET, EMPTY_QUIET = 0.1, 1.0
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW


class Watch:
    """A regular file, open for reading. While it is open, its inode number is not given to another file.

    Raises `FileBusy` when it is open for writing, and `OSError`. `leases` False: none is asked for, so that
    only the times of the file tell.
    """

    def __init__(self, calls: SystemCalls, path: str, *, leases: bool) -> None:
        self._calls = calls
        self._path = path
        try:  # O_NONBLOCK: wait neither for the lease of another program nor for a pipe
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
        self._calls.close(self.descriptor)  # releases the lease: programs that wait in open() go on now

    def _take_lease(self) -> bool:
        try:
            self._calls.lease(self.descriptor)
        except BlockingIOError:  # it is open, or mapped, for writing
            raise FileBusy(self._path) from None
        except OSError:  # another user's file, or a file system without leases
            return False
        return True

    def read(self) -> ReadFile:
        """The bytes, with the state from before they were read."""
        self._status = self._calls.fstat(self.descriptor)
        return ReadFile(self._calls.read(self.descriptor), state_of(self._status))

    def is_untouched(self) -> bool:
        """Whether the lease is unbroken: no program wants to write. Without one unknown: True."""
        return not self.is_leased or self._calls.is_leased(self.descriptor)

    def is_quiet(self) -> bool:
        """Whether the last change seen is long enough ago for the file not to be half saved."""
        status = self._status
        # Without a lease a program that sets the time of its file back is not taken at its word.
        changed = status.st_mtime if self.is_leased else max(status.st_mtime, status.st_ctime)
        return abs(self._calls.now() - changed) >= (QUIET if status.st_size else EMPTY_QUIET)

    def is_still(self, path: str, digest: str) -> bool:
        """Whether `path` is this very file, and its bytes, with this digest before, are the same."""
        if not is_same(self._calls, self.descriptor, path):
            return False
        if self.is_leased:
            return self.is_untouched()  # no program could write
        return digest_of(self._calls.read(self.descriptor)) == digest

    def let_write(self, patience: float) -> None:
        """Release the lease to programs that wait in open(), and wait until they close it, or time out."""
        self._calls.end_lease(self.descriptor)
        for _ in range(round(patience / 0.01)):
            self._calls.sleep(0.01)
            with suppress(FileBusy):
                self._take_lease()
                return


def check_regular(status: os.stat_result, path: str) -> None:
    """Raise `OSError` unless this is a regular file."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "There is no file, but something else", path)


def is_same(calls: SystemCalls, descriptor: int, path: str) -> bool:
    """Whether the name leads to the open file."""
    with suppress(FileNotFoundError):
        return os.path.samestat(calls.fstat(descriptor), calls.lstat(path))
    return False
