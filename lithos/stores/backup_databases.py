"""The databases of a backup: copied as of one moment, and prepared for a second life."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import apsw

from lithos.stores.backup_files import SavedFile, describe_file
from lithos.stores.coordination import CoordinationStore
from lithos.stores.snapshots import snapshot
from lithos.stores.sqlite import transaction


def copy_database(source: Path, target: Path, *, is_live: bool) -> SavedFile | None:
    """Copy a database as of one moment, while others may write it; None when there is none."""
    with snapshot(source, is_live=is_live) as reading:
        if reading is None:
            return None
        target.parent.mkdir(parents=True, exist_ok=True)
        writing = apsw.Connection(str(target))
        try:
            with writing.backup("main", reading, "main") as copying:
                while not copying.done:
                    copying.step(-1)
            writing.execute("PRAGMA journal_mode=DELETE").fetchall()
        finally:
            writing.close()
    with target.open("rb") as written:
        os.fsync(written.fileno())
    return describe_file(target)


def journal_head(path: Path) -> int | None:
    """The last seq in the journal of a database that nobody writes."""
    if not path.exists():
        return None
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        ((head,),) = connection.execute("SELECT MAX(seq) FROM events").fetchall()
    finally:
        connection.close()
    return head if isinstance(head, int) else None


def move_counters_ahead(path: Path, now: datetime) -> None:
    """Have no seq and no fence given out again that was given out after the copy was made."""
    if not path.exists():
        return
    CoordinationStore.open(path, now).close()  # fences, and columns of an older version
    connection = apsw.Connection(str(path))
    try:
        with transaction(connection):
            connection.execute(
                "UPDATE meta SET value=MAX(value+1, ?) WHERE name='next_seq'", (int(now.timestamp() * 1000),)
            )
    finally:
        connection.close()
