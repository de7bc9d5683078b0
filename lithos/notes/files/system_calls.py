"""The system calls that change note files, as a port. Tests replace the port to inject failures.

Paths are absolute strings, descriptors are integers, and failures are `OSError` with the errno of the system.
If the system does not support `exchange` or `rename_new`, the call fails with an errno in `UNSUPPORTED`.
"""

from __future__ import annotations

import errno
import os
import time
from typing import Final, Protocol

from lithos.kernel.operating_system import (
    CLOSE_ON_EXEC,
    EXCHANGE,
    NO_REPLACE,
    PIN,
    UNNAMED,
    end_lease,
    is_leased,
    link_open_file,
    native_path,
    set_mode,
    sync_all,
    sync_file,
    take_lease,
)
from lithos.kernel.operating_system import rename_with_flags as _rename_with

__all__ = ["UNNAMED", "UNSUPPORTED", "KernelCalls", "SystemCalls"]

#: Error numbers which mean that this kernel, sandbox or file system does not support the call or one of its
#: flags.
UNSUPPORTED: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM})


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
    """Production adapter that makes the system calls of this system."""

    def open(self, path: str, flags: int, mode: int = 0o666) -> int:
        return os.open(native_path(path), flags | CLOSE_ON_EXEC, mode)

    def pin(self, path: str) -> int:
        return os.open(native_path(path), PIN)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def read(self, descriptor: int) -> bytes:
        os.lseek(descriptor, 0, os.SEEK_SET)
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            return file.readall()

    def write(self, descriptor: int, data: memoryview) -> int:
        return os.write(descriptor, data)

    def fsync(self, descriptor: int) -> None:
        sync_file(descriptor)

    def sync_all(self) -> None:
        sync_all()

    def fchmod(self, descriptor: int, mode: int) -> None:
        set_mode(descriptor, mode)

    def fstat(self, descriptor: int) -> os.stat_result:
        return os.fstat(descriptor)

    def lstat(self, path: str) -> os.stat_result:
        return os.lstat(native_path(path))

    def mkdir(self, path: str) -> None:
        os.mkdir(native_path(path))

    def rename(self, source: str, target: str) -> None:
        os.rename(native_path(source), native_path(target))

    def exchange(self, one: str, other: str) -> None:
        _rename_with(one, other, EXCHANGE)

    def rename_new(self, source: str, target: str) -> None:
        _rename_with(source, target, NO_REPLACE)

    def link(self, source: str, target: str) -> None:
        os.link(native_path(source), native_path(target))

    def link_unnamed(self, descriptor: int, target: str) -> None:
        link_open_file(descriptor, target)

    def unlink(self, path: str) -> None:
        os.unlink(native_path(path))

    def lease(self, descriptor: int) -> None:
        take_lease(descriptor)

    def is_leased(self, descriptor: int) -> bool:
        return is_leased(descriptor)

    def end_lease(self, descriptor: int) -> None:
        end_lease(descriptor)

    def token(self) -> str:
        return os.urandom(4).hex()

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
