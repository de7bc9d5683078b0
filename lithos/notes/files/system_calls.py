"""The system calls through which note files are changed, as a port: tests replace them to inject failures.

Paths are absolute text, descriptors are numbers, failures are `OSError` with the errno of the system.
`exchange` and `rename_new` fail with one of `UNSUPPORTED` where there is no such call.
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

#: A call, or a flag of it, that this kernel, sandbox or file system does not have.
UNSUPPORTED: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM})

#: Opens a new file in a folder, which has no name until `link_unnamed`; `EISDIR` where there is no such flag.
UNNAMED: Final[int] = getattr(os, "O_TMPFILE", os.O_DIRECTORY) | os.O_WRONLY

_MAC = sys.platform == "darwin"
#: RENAME_EXCHANGE and RENAME_NOREPLACE; RENAME_SWAP and RENAME_EXCL on macOS.
_EXCHANGE, _NO_REPLACE = 2, 4 if _MAC else 1
_AT_FDCWD = -100
#: Holds a file without opening it, so that not even its permissions matter.
_PIN = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_NOFOLLOW | os.O_CLOEXEC


class _Leases(NamedTuple):
    """Numbers of the calls of `fcntl`."""

    signal: int
    take: int
    ask: int


def _find_leases() -> _Leases | None:
    """Return the numbers of the lease calls; None if the system has no leases (all except Linux)."""
    numbers = [getattr(fcntl, name, None) for name in ("F_SETSIG", "F_SETLEASE", "F_GETLEASE")]
    return None if None in numbers else _Leases(*(number for number in numbers if number is not None))


_LEASES = _find_leases()
_FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)


class SystemCalls(Protocol):
    """Port to the operating system for changing note files. Everything but the clocks blocks."""

    def open(self, path: str, flags: int, mode: int = 0o666) -> int: ...
    def pin(self, path: str) -> int:
        """Open a descriptor (`O_PATH`) that only keeps the inode number from being reused."""

    def close(self, descriptor: int) -> None: ...
    def read(self, descriptor: int) -> bytes:
        """Read the whole file from its beginning."""

    def write(self, descriptor: int, data: memoryview) -> int: ...
    def fsync(self, descriptor: int) -> None: ...
    def sync_all(self) -> None:
        """Make everything durable, on all file systems: far slower than `fsync`."""

    def fchmod(self, descriptor: int, mode: int) -> None: ...
    def fstat(self, descriptor: int) -> os.stat_result: ...
    def lstat(self, path: str) -> os.stat_result: ...
    def mkdir(self, path: str) -> None: ...
    def rename(self, source: str, target: str) -> None: ...
    def exchange(self, one: str, other: str) -> None:
        """Exchange the files of two names atomically."""

    def rename_new(self, source: str, target: str) -> None:
        """Rename, but never over a file that exists: `FileExistsError`."""

    def link(self, source: str, target: str) -> None: ...
    def link_unnamed(self, descriptor: int, target: str) -> None:
        """Give a file opened with `UNNAMED` its name, never that of a file that exists: `FileExistsError`."""

    def unlink(self, path: str) -> None: ...
    def lease(self, descriptor: int) -> None:
        """Take a read lease: `BlockingIOError` while any program has the file open for writing."""

    def is_leased(self, descriptor: int) -> bool:
        """Return whether the lease is unbroken: False once a program wants to open the file for writing."""

    def end_lease(self, descriptor: int) -> None: ...
    def token(self) -> str:
        """Eight random characters for a file name."""

    def now(self) -> float:
        """Seconds of the clock that file times are in."""

    def sleep(self, seconds: float) -> None: ...


class KernelCalls:
    """Production adapter: the kernel's, on Linux and macOS."""

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
            # Where `fsync` leaves data in the disk's own memory (macOS); not every file system has it.
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
        # With a folder, which an absolute path does not need, Python calls linkat(), which follows the link.
        os.link(f"/proc/self/fd/{descriptor}", target, dst_dir_fd=descriptor, follow_symlinks=True)

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def lease(self, descriptor: int) -> None:
        if _LEASES is None:
            raise OSError(errno.ENOSYS, "This system has no leases")
        # The default signal of a lease that is being broken ends the process; this one is ignored.
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
    except AttributeError:  # a C library without it
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), source, None, target) from None
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), source, None, target)
