"""Probes for diagnosis: file system features, free space, database integrity, and the process on a port.

Probes leave no files behind. They block for some milliseconds.
"""

from __future__ import annotations

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
from lithos.kernel.operating_system import room_in, try_lock
from lithos.kernel.values.times import parse_time
from lithos.notes.files.values import TEMPORARY_PREFIX, TEMPORARY_SUFFIX


@frozen
class Space:
    """Free space of a disk. `inodes` is None on file systems that do not count inodes."""

    bytes: int
    inodes: int | None


def try_folder(folder: Path) -> bool:
    """Write, sync, rename and remove probe files.

    Return whether the folder supports locks. Raises `OSError`.
    """
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
            with suppress(OSError):  # only the first error is raised
                path.unlink(missing_ok=True)


def _holds_lock(descriptor: int, path: Path) -> bool:
    """Return whether a lock prevents a second lock. Some file systems grant every lock."""
    with opened(path, os.O_RDWR) as other:
        try:
            return not all(try_lock(each) for each in (descriptor, other))
        except OSError as failure:
            if failure.errno not in NO_LOCKS:
                raise
    return False


def free_space(folder: Path) -> Space:
    """Return the free space that an unprivileged process can use. Raises `OSError`."""
    room = room_in(folder)
    return Space(room.bytes, room.inodes)


def check_integrity(path: Path, *, is_live: bool) -> str | None:
    """Return the first problem of a database, or None if the database is intact or missing.

    Raises the errors of `snapshot`.
    """
    with snapshot(path, is_live=is_live) as connection:
        if connection is None:
            return None
        try:
            found = str(connection.execute("PRAGMA integrity_check(1)").fetchall()[0][0])
        except (apsw.CorruptError, apsw.NotADBError) as damage:
            return str(damage)
        return None if found == "ok" else found


def newest_event_time(path: Path, *, is_live: bool) -> datetime | None:
    """Return the time of the newest event by the server's clock, or None if there are no events.

    Raises the errors of `snapshot`.
    """
    with snapshot(path, is_live=is_live) as connection:
        if connection is None:
            return None
        try:
            row = connection.execute("SELECT timestamp FROM events ORDER BY seq DESC LIMIT 1").fetchone()
            return None if row is None else parse_time(str(row[0]))
        except (apsw.SQLError, ValueError):
            return None  # an older layout has no journal yet; the next start creates the journal


def read_layout_version(path: Path) -> int | None:
    """Return the layout version in a migration registry, or None if the file is missing.

    Raises `ValueError` if the content is not a version.
    """
    try:
        version = json.loads(path.read_bytes())["current_version"]
    except FileNotFoundError:
        return None
    except (KeyError, TypeError) as failure:
        raise ValueError("the content does not have the expected form") from failure
    if not isinstance(version, int):
        raise ValueError("the content does not have the expected form")
    return version


_LISTENING = "0A"
#: Folder in which Linux lists processes and sockets. Other systems do not have it, so no process is found
#: there.
PROC: Final = Path("/proc")


def name_listener(port: int) -> str | None:
    """Return the process that listens on a local TCP port, such as `process 12 (nginx)`.

    Return None if it is unknown.

    Only an administrator can see the processes of other users.
    """
    sockets = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for process in PROC.glob("[0-9]*") if sockets else ():
        with suppress(OSError):  # the process has ended, or belongs to another user
            for descriptor in os.listdir(process / "fd"):
                if os.readlink(process / "fd" / descriptor) in sockets:
                    return f"process {process.name} ({(process / 'comm').read_text().strip()})"
    return None


def _listening_inodes(port: int) -> Iterator[str]:
    """Yield the inodes of sockets that listen on a port.

    Table lines are `number: address:port remote:port state … uid timeout inode`, with hexadecimal numbers.
    """
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (PROC / "net" / table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]
