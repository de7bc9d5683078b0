"""Trying out what Lithos needs of a file system and a database, leaving nothing behind. It blocks."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import apsw
from attrs import frozen

from lithos.core.times import parse_time
from lithos.stores.files import TEMPORARY_PREFIX, TEMPORARY_SUFFIX
from lithos.stores.lockless import NO_LOCKS
from lithos.stores.snapshots import snapshot


@frozen
class Space:
    """What is free; `inodes` is None where the file system does not count them."""

    bytes: int
    inodes: int | None


def try_folder(folder: Path) -> bool:
    """Write, sync, rename and remove dot-named files; whether locks work there. Raises `OSError`."""
    stem = f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}"
    first, second = (folder / f"{stem}{turn}{TEMPORARY_SUFFIX}" for turn in "ab")
    try:
        descriptor = os.open(first, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, b"lithos doctor\n")
            os.fsync(descriptor)
            locks = _holds_lock(descriptor, first)
        finally:
            os.close(descriptor)
        os.rename(first, second)
        return locks
    finally:
        for path in (first, second):
            with suppress(OSError):  # what made it fail is told already
                path.unlink(missing_ok=True)


def _holds_lock(descriptor: int, path: Path) -> bool:
    """Whether a lock keeps a second one out: some file systems take every lock and keep none."""
    other = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as failure:
        if failure.errno not in NO_LOCKS:
            raise
        return False
    else:
        return False
    finally:
        os.close(other)


def free_space(folder: Path) -> Space:
    """What an unprivileged process may still use. Raises `OSError`."""
    status = os.statvfs(folder)
    return Space(status.f_bavail * status.f_frsize, status.f_favail if status.f_files else None)


def check_integrity(path: Path, *, is_live: bool) -> str | None:
    """What is wrong inside a database that opens; None when it is sound or absent. Raises as `snapshot`."""
    with snapshot(path, is_live=is_live) as connection:
        if connection is None:
            return None
        found = str(connection.execute("PRAGMA integrity_check(1)").fetchall()[0][0])
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
