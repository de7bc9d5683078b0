"""Probes for diagnosis: file system features, free space, database integrity, and the process on a port.

They leave nothing behind and block, for some milliseconds.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import apsw
from attrs import frozen

from lithos.kernel.databases.lock import NO_LOCKS
from lithos.kernel.databases.private_files import opened
from lithos.kernel.databases.sqlite import snapshot
from lithos.kernel.values.times import parse_time
from lithos.notes.files.values import TEMPORARY_PREFIX, TEMPORARY_SUFFIX


@frozen
class Space:
    """Free space; `inodes` is absent (None) on file systems that do not count them."""

    bytes: int
    inodes: int | None


def try_folder(folder: Path) -> bool:
    """Write, sync, rename and remove dot-named files; whether locks work there. Raises `OSError`."""
    stem = f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}"
    first, second = (folder / f"{stem}{turn}{TEMPORARY_SUFFIX}" for turn in "ab")
    try:
        with opened(first, os.O_RDWR | os.O_CREAT | os.O_EXCL) as descriptor:
            os.write(descriptor, b"lithos doctor\n")
            os.fsync(descriptor)
            locks = _holds_lock(descriptor, first)
        os.rename(first, second)
        return locks
    finally:
        for path in (first, second):
            with suppress(OSError):  # the first failure is raised already
                path.unlink(missing_ok=True)


def _holds_lock(descriptor: int, path: Path) -> bool:
    """Whether a lock keeps a second one out: some file systems take every lock and keep none."""
    with opened(path, os.O_RDWR) as other:
        try:
            for each in (descriptor, other):
                fcntl.flock(each, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError as failure:
            if failure.errno not in NO_LOCKS:
                raise
    return False


def free_space(folder: Path) -> Space:
    """Free space for an unprivileged process. Raises `OSError`."""
    status = os.statvfs(folder)
    return Space(status.f_bavail * status.f_frsize, status.f_favail if status.f_files else None)


def check_integrity(path: Path, *, is_live: bool) -> str | None:
    """Integrity check of a database: the first problem; None when sound or absent. Raises as `snapshot`."""
    with snapshot(path, is_live=is_live) as connection:
        if connection is None:
            return None
        try:
            found = str(connection.execute("PRAGMA integrity_check(1)").fetchall()[0][0])
        except (apsw.CorruptError, apsw.NotADBError) as damage:
            return str(damage)
        return None if found == "ok" else found


def newest_event_time(path: Path, *, is_live: bool) -> datetime | None:
    """When the newest event of a coordination database was, by the clock of its server; None without events.

    Raises as `snapshot`.
    """
    with snapshot(path, is_live=is_live) as connection:
        if connection is None:
            return None
        try:
            row = connection.execute("SELECT timestamp FROM events ORDER BY seq DESC LIMIT 1").fetchone()
            return None if row is None else parse_time(str(row[0]))
        except (apsw.SQLError, ValueError):
            return None  # an older layout without a journal: the next start makes one


def read_layout_version(path: Path) -> int | None:
    """The version in a migration registry, None without one. Raises `ValueError` for another content."""
    try:
        version = json.loads(path.read_bytes())["current_version"]
    except FileNotFoundError:
        return None
    except (KeyError, TypeError) as failure:
        raise ValueError("it has not the expected form") from failure
    if not isinstance(version, int):
        raise ValueError("it has not the expected form")
    return version


_LISTENING = "0A"
#: The place where Linux lists processes and sockets; other systems report nothing.
PROC: Final = Path("/proc")


def name_listener(port: int) -> str | None:
    """The process that listens on a TCP port of this machine as `process 12 (nginx)`; None when unknown.

    Processes of other users are only known to an administrator.
    """
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for process in PROC.glob("[0-9]*") if sockets else ():
        with suppress(OSError):  # it ended meanwhile, or belongs to another user
            for descriptor in os.listdir(process / "fd"):
                if os.readlink(process / "fd" / descriptor) in sockets:
                    return f"process {process.name} ({(process / 'comm').read_text().strip()})"
    return None


def _listening_inodes(port: int) -> Iterator[str]:
    """Lines are `number: address:port remote:port state … uid timeout inode`, numbers in hexadecimal."""
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]
