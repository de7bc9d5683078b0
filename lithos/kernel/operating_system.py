"""Everything that differs between operating systems. Other modules do not ask which system they run on.

Lithos supports Linux and macOS. Native Windows is not supported yet, and `refusal` says so at the start. All
that Windows lacks or does differently is behind the names of this module, so a port changes this file. No
other module may use a name of the standard library that Windows does not have. `mypy --platform win32` checks
this, except for the process that reads attachments, which gets open files over a socket.

These parts still differ on Windows: a folder cannot be opened, so it cannot be locked, synced or walked by
descriptor. Two files cannot be exchanged atomically. A file that another program has open can be renamed
only if that program allows it. Windows has no leases, and no signals except Ctrl-C. The rules that only
need text are complete: `name_problem` and `native_path`.

Settings, messages to agents and everything that depends on notes do not belong here.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

#: Name of the system, as in `sys.platform`. Tests replace it.
SYSTEM: str = sys.platform
#: Size of a memory page in bytes.
PAGE: Final = mmap.PAGESIZE
#: Longest path in characters that every program on Windows can open. A longer path needs the prefix.
LONGEST_PLAIN: Final = 247
_PREFIX: Final = "\\\\?\\"
_NOT_ON_WINDOWS: Final = re.compile(r'[<>:"|?*\\\x00-\x1f]')


class Leases(NamedTuple):
    """The `fcntl` command numbers for leases."""

    signal: int
    take: int
    ask: int


def refusal() -> str | None:
    """Return why Lithos does not start on this system, and what to do. Return None if it does."""
    if SYSTEM != "win32":
        return None
    return (
        "Lithos does not run on native Windows yet: it cannot lock and sync folders there, so edits could be "
        "lost. Nothing was started or changed. Run it in WSL 2, with the vault on the Linux side."
    )


def name_problem(part: str, system: str | None = None) -> str | None:
    """Return why a system cannot store a file with this name, or None.

    Names of devices are refused on every system (lithos/notes/model/paths.py), so they are not checked here.
    """
    if (SYSTEM if system is None else system) == "win32" and (found := _NOT_ON_WINDOWS.search(part)):
        return f"Windows does not allow {found[0]!a} in a name"
    return None


def native_path(path: str, system: str | None = None) -> str:
    """Return an absolute path in the form in which the system opens it, however long it is.

    On Windows, a long path gets a prefix that turns the limit of 260 characters off.
    """
    if (SYSTEM if system is None else system) != "win32" or len(path) <= LONGEST_PLAIN:
        return path
    if path.startswith(_PREFIX):
        return path
    plain = path.replace("/", "\\")
    return f"{_PREFIX}UNC{plain[1:]}" if plain.startswith("\\\\") else _PREFIX + plain


class Room(NamedTuple):
    """Free space of a disk in bytes, and free inodes. `inodes` is None if the disk does not count inodes."""

    bytes: int
    inodes: int | None
    is_read_only: bool


if sys.platform == "win32":
    import msvcrt
    import shutil
    import time

    #: Flag for descriptors that child processes do not inherit. Files are always read as bytes.
    CLOSE_ON_EXEC: Final[int] = os.O_NOINHERIT | os.O_BINARY
    FOLDER: Final[int] = 0
    NO_FOLLOW: Final[int] = 0
    NO_WAIT: Final[int] = 0
    UNNAMED: Final[int] = os.O_WRONLY
    PIN: Final[int] = os.O_RDONLY | CLOSE_ON_EXEC
    #: Whether folders can be opened and synced. NTFS makes names durable with its own journal.
    SYNCS_FOLDERS: Final[bool] = False
    LEASES: Leases | None = None
    #: Byte that is locked. It is beyond the end of the file, because a locked byte cannot be read by others.
    _LOCKED_BYTE: Final = 1 << 62

    def try_lock(descriptor: int, *, shared: bool = False) -> bool:
        # Windows has no shared locks in the C library. Two probes at once retry, as for an owner.
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def wait_for_lock(descriptor: int) -> None:
        while not try_lock(descriptor):
            time.sleep(0.01)

    def unlock(descriptor: int) -> None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

    def read_at(descriptor: int, most: int, offset: int) -> bytes:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, most)

    def write_at(descriptor: int, data: bytes, offset: int) -> int:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.write(descriptor, data)

    def set_mode(descriptor: int, mode: int) -> None:
        """Do nothing: on Windows, the folder decides who may read a file."""

    def set_owner(path: str | Path, user: int, group: int) -> None:
        """Do nothing: files on Windows have no owner numbers."""

    def sync_file(descriptor: int) -> None:
        os.fsync(descriptor)

    def sync_all() -> None:
        """Do nothing: Windows can only sync a whole disk with the rights of an administrator."""

    def take_lease(descriptor: int) -> None:
        raise OSError(errno.ENOSYS, "Leases are not supported on this system")

    def is_leased(descriptor: int) -> bool:
        return False

    def end_lease(descriptor: int) -> None:
        """Do nothing, because Windows has no leases."""

    def rename_with_flags(source: str, target: str, flags: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), source, None, target)

    def link_open_file(descriptor: int, target: str) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), target)

    def user_id() -> int:
        return -1

    def node_name() -> str:
        return os.environ.get("COMPUTERNAME", "").lower()

    def room_in(folder: str | Path) -> Room:
        return Room(shutil.disk_usage(folder).free, None, is_read_only=False)

    def peak_memory() -> int:
        """Return 0: the C library does not report the memory."""
        return 0

    def most_open_files() -> int:
        """Return the limit of the C library."""
        return 8_192

    def set_niceness(process: int, niceness: int) -> None:
        """Do nothing: Windows has priority classes instead, for a whole process."""

    def takes_output(descriptor: int, patience: int) -> bool:
        """Return True: only sockets can be asked on Windows."""
        return True

else:
    import fcntl
    import resource
    import select

    #: Flag for descriptors that child processes do not inherit.
    CLOSE_ON_EXEC: Final[int] = os.O_CLOEXEC
    #: Flags to open only a folder, to refuse a symlink, and not to wait for the other end of a pipe.
    FOLDER: Final[int] = os.O_DIRECTORY
    NO_FOLLOW: Final[int] = os.O_NOFOLLOW
    NO_WAIT: Final[int] = os.O_NONBLOCK
    #: Flags to open a new file in a folder without a name. Opening fails with `EISDIR` if the system does not
    #: have the flag.
    UNNAMED: Final[int] = getattr(os, "O_TMPFILE", os.O_DIRECTORY) | os.O_WRONLY
    #: Flags to refer to a file without opening it, so that the permissions of the file do not matter.
    PIN: Final[int] = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_NOFOLLOW | os.O_CLOEXEC
    #: Whether folders can be opened and synced.
    SYNCS_FOLDERS: Final[bool] = True
    FULL_SYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
    _AT_FDCWD: Final = -100

    def find_leases() -> Leases | None:
        """Return the command numbers for leases. Return None if the system is not Linux."""
        numbers = [getattr(fcntl, name, None) for name in ("F_SETSIG", "F_SETLEASE", "F_GETLEASE")]
        return None if None in numbers else Leases(*(number for number in numbers if number is not None))

    LEASES: Leases | None = find_leases()
    _libc: Any = None

    def try_lock(descriptor: int, *, shared: bool = False) -> bool:
        """Lock an open file or folder. Return False if another process has a lock. Raises `OSError`."""
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def wait_for_lock(descriptor: int) -> None:
        """Lock an open file. Blocks until the lock is free."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def unlock(descriptor: int) -> None:
        """Release a lock. Closing the descriptor also releases the lock."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)

    def read_at(descriptor: int, most: int, offset: int) -> bytes:
        """Read at most `most` bytes from a place in a file."""
        return os.pread(descriptor, most, offset)

    def write_at(descriptor: int, data: bytes, offset: int) -> int:
        """Write bytes at a place in a file. Return how many were written."""
        return os.pwrite(descriptor, data, offset)

    def set_mode(descriptor: int, mode: int) -> None:
        """Set the permissions of an open file."""
        os.fchmod(descriptor, mode)

    def set_owner(path: str | Path, user: int, group: int) -> None:
        """Set the owner of a file."""
        os.chown(path, user, group)

    def sync_file(descriptor: int) -> None:
        """Make an open file durable."""
        if FULL_SYNC is not None:
            # On macOS, `fsync` does not flush the disk's own cache. Not every file system supports this call.
            with suppress(OSError):
                fcntl.fcntl(descriptor, FULL_SYNC)
                return
        os.fsync(descriptor)

    def sync_all() -> None:
        """Make all changes on all file systems durable. This is far slower than `sync_file`."""
        os.sync()

    def take_lease(descriptor: int) -> None:
        """Take a read lease. Raise `BlockingIOError` while any program has the file open for writing."""
        if LEASES is None:
            raise OSError(errno.ENOSYS, "Leases are not supported on this system")
        # The default signal of a breaking lease would end the process. SIGURG is ignored.
        fcntl.fcntl(descriptor, LEASES.signal, signal.SIGURG)
        fcntl.fcntl(descriptor, LEASES.take, fcntl.F_RDLCK)

    def is_leased(descriptor: int) -> bool:
        """Return whether the lease is unbroken."""
        return LEASES is not None and fcntl.fcntl(descriptor, LEASES.ask) == fcntl.F_RDLCK

    def end_lease(descriptor: int) -> None:
        """Give a lease back."""
        if LEASES is not None:
            fcntl.fcntl(descriptor, LEASES.take, fcntl.F_UNLCK)

    def rename_with_flags(source: str, target: str, flags: int) -> None:
        """Rename with `EXCHANGE` or `NO_REPLACE`. Raises `OSError`, `ENOSYS` if there is no such call."""
        import ctypes  # noqa: PLC0415 - hooks load this module and change no note files

        global _libc  # noqa: PLW0603 - loaded once, when the first file is changed
        if _libc is None:
            _libc = ctypes.CDLL(None, use_errno=True)
        names = os.fsencode(source), os.fsencode(target)
        try:
            if sys.platform == "darwin":
                failed = _libc.renamex_np(names[0], names[1], ctypes.c_uint(flags))
            else:
                failed = _libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(flags))
        except AttributeError:  # the C library does not have the function
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), source, None, target) from None
        if failed:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), source, None, target)

    def link_open_file(descriptor: int, target: str) -> None:
        """Give a name to a file opened with `UNNAMED`. Raise `FileExistsError` if `target` exists."""
        # Python calls linkat(), which follows the link, only if a folder argument is given. The path is
        # absolute, so the folder itself does not matter.
        os.link(f"/proc/self/fd/{descriptor}", target, dst_dir_fd=descriptor, follow_symlinks=True)

    def user_id() -> int:
        """Return the number of the user whose rights apply."""
        return os.geteuid()

    def node_name() -> str:
        """Return the name of this machine in its network."""
        return os.uname().nodename

    def room_in(folder: str | Path) -> Room:
        """Return the free space that an unprivileged process can use. Raises `OSError`."""
        status = os.statvfs(folder)
        inodes = status.f_favail if status.f_files else None
        return Room(
            status.f_bavail * status.f_frsize, inodes, is_read_only=bool(status.f_flag & os.ST_RDONLY)
        )

    def peak_memory() -> int:
        """Return the peak memory of this process in bytes."""
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    def most_open_files() -> int:
        """Return how many files this process may have open."""
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]

    def set_niceness(process: int, niceness: int) -> None:
        """Set the priority of a process, or on Linux of a thread. Raises `OSError`."""
        os.setpriority(os.PRIO_PROCESS, process, niceness)

    def takes_output(descriptor: int, patience: int) -> bool:
        """Return whether a descriptor accepts output within `patience` ms."""
        waiting = select.poll()
        waiting.register(descriptor, select.POLLOUT)
        return bool(waiting.poll(patience))


#: Flags of `rename_with_flags`: exchange two files, and never replace a file. macOS has other numbers.
EXCHANGE: Final = 2
NO_REPLACE: Final = 4 if sys.platform == "darwin" else 1
