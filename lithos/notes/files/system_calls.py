"""The system calls that change note files, as a port. Tests replace the port to inject failures.

Paths are absolute strings, descriptors are integers, and failures are `OSError` with the errno of the system.
If the system does not support `exchange` or `rename_new`, the call fails with an errno in `UNSUPPORTED`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Final, NamedTuple, Protocol

#: Error numbers which mean that this kernel, sandbox or file system does not support the call or one of its
#: flags.
UNSUPPORTED: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM})

#: Flags to open a new file in a folder without a name. `link_unnamed` later names the file. Opening fails
#: with `EISDIR` if the system does not have the flag.
UNNAMED: Final[int] = getattr(os, "O_TMPFILE", os.O_DIRECTORY) | os.O_WRONLY

_MAC = sys.platform == "darwin"
#: The flags RENAME_EXCHANGE and RENAME_NOREPLACE. On macOS, these are RENAME_SWAP and RENAME_EXCL.
_EXCHANGE, _NO_REPLACE = 2, 4 if _MAC else 1
_AT_FDCWD = -100
#: Flags to refer to a file without opening it, so that the permissions of the file do not matter.
_PIN = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_NOFOLLOW | os.O_CLOEXEC


class _Leases(NamedTuple):
    """The `fcntl` command numbers for leases."""

    signal: int
    take: int
    ask: int


def _find_leases() -> _Leases | None:
    """Return the command numbers for leases. Return None if the system is not Linux."""
    numbers = [getattr(fcntl, name, None) for name in ("F_SETSIG", "F_SETLEASE", "F_GETLEASE")]
    return None if None in numbers else _Leases(*(number for number in numbers if number is not None))


_LEASES = _find_leases()
_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)


class SystemCalls(Protocol):
    """Port to the operating system for changing note files. All methods block, except for the clock."""

    def open(self, path: str, flags: int, mode: int = 0o666) -> int: ...
    def pin(self, path: str) -> int:
        """Return an `O_PATH` descriptor for a file.

        While the descriptor is open, the inode number of the file is not reused.
        """

    def close(self, descriptor: int) -> None: ...
    def read(self, descriptor: int) -> bytes:
        """Return all bytes of the file from its beginning."""

    def write(self, descriptor: int, data: memoryview) -> int: ...
    def fsync(self, descriptor: int) -> None: ...
    def sync_all(self) -> None:
        """Make all changes on all file systems durable. This is far slower than `fsync`."""

    def fchmod(self, descriptor: int, mode: int) -> None: ...
    def fstat(self, descriptor: int) -> os.stat_result: ...
    def lstat(self, path: str) -> os.stat_result: ...
    def mkdir(self, path: str) -> None: ...
    def rename(self, source: str, target: str) -> None: ...
    def exchange(self, one: str, other: str) -> None:
        """Exchange the files of two paths atomically."""

    def rename_new(self, source: str, target: str) -> None:
        """Rename a file without overwriting. Raise `FileExistsError` if `target` exists."""

    def link(self, source: str, target: str) -> None: ...
    def link_unnamed(self, descriptor: int, target: str) -> None:
        """Give a name to a file opened with `UNNAMED`. Raise `FileExistsError` if `target` exists."""

    def unlink(self, path: str) -> None: ...
    def lease(self, descriptor: int) -> None:
        """Take a read lease. Raise `BlockingIOError` while any program has the file open for writing."""

    def is_leased(self, descriptor: int) -> bool:
        """Return whether the lease is unbroken.

        The lease breaks when a program tries to open the file for writing.
        """

    def end_lease(self, descriptor: int) -> None: ...
    def token(self) -> str:
        """Return eight random characters for a file name."""

    def now(self) -> float:
        """Return the current time in seconds, according to the clock of file times."""

    def sleep(self, seconds: float) -> None: ...


class KernelCalls:
    """Production adapter that makes the system calls on Linux and macOS."""

    def open(self, path: str, flags: int, mode: int = 0o666) -> int:
        return os.open(path, flags | os.O_CLOEXEC, mode)

    def pin(self, path: str) -> int:
        return os.open(path, _PIN)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def read(self, descriptor: int) -> bytes:
        os.lseek(descriptor, 0, os.SEEK_SET)
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            return file.readall()

    def write(self, descriptor: int, data: memoryview) -> int:
        return os.write(descriptor, data)

    def fsync(self, descriptor: int) -> None:
        if _FULL_SYNC is not None:
            # On macOS, `fsync` does not flush the disk's own cache. Not every file system supports this call.
            with suppress(OSError):
                fcntl.fcntl(descriptor, _FULL_SYNC)
                return
        os.fsync(descriptor)

    def sync_all(self) -> None:
        os.sync()

    def fchmod(self, descriptor: int, mode: int) -> None:
        os.fchmod(descriptor, mode)

    def fstat(self, descriptor: int) -> os.stat_result:
        return os.fstat(descriptor)

    def lstat(self, path: str) -> os.stat_result:
        return os.lstat(path)

    def mkdir(self, path: str) -> None:
        os.mkdir(path)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def exchange(self, one: str, other: str) -> None:
        _rename_with(one, other, _EXCHANGE)

    def rename_new(self, source: str, target: str) -> None:
        _rename_with(source, target, _NO_REPLACE)

    def link(self, source: str, target: str) -> None:
        os.link(source, target)

    def link_unnamed(self, descriptor: int, target: str) -> None:
        # Python calls linkat(), which follows the link, only if a folder argument is given. The path is
        # absolute, so the folder itself does not matter.
        os.link(f"/proc/self/fd/{descriptor}", target, dst_dir_fd=descriptor, follow_symlinks=True)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def lease(self, descriptor: int) -> None:
        if _LEASES is None:
            raise OSError(errno.ENOSYS, "Leases are not supported on this system")
        # The default signal of a breaking lease would end the process. SIGURG is ignored.
        fcntl.fcntl(descriptor, _LEASES.signal, signal.SIGURG)
        fcntl.fcntl(descriptor, _LEASES.take, fcntl.F_RDLCK)

    def is_leased(self, descriptor: int) -> bool:
        return _LEASES is not None and fcntl.fcntl(descriptor, _LEASES.ask) == fcntl.F_RDLCK

    def end_lease(self, descriptor: int) -> None:
        if _LEASES is not None:
            fcntl.fcntl(descriptor, _LEASES.take, fcntl.F_UNLCK)

    def token(self) -> str:
        return os.urandom(4).hex()

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


_libc: ctypes.CDLL | None = None


def _rename_with(source: str, target: str, flags: int) -> None:
    global _libc  # noqa: PLW0603 - loaded once, when the first file is changed
    if _libc is None:
        _libc = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(source), os.fsencode(target)
    try:
        if _MAC:
            failed = _libc.renamex_np(names[0], names[1], ctypes.c_uint(flags))
        else:
            failed = _libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(flags))
    except AttributeError:  # the C library does not have the function
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), source, None, target) from None
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), source, None, target)
