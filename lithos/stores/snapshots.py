"""Looking at a database without leaving a trace, also beside the process that writes it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import apsw

from lithos.stores.sqlite import BUSY_TIMEOUT_MS, CorruptDatabase

_READ = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


@contextmanager
def snapshot(path: Path, *, is_live: bool) -> Iterator[apsw.Connection | None]:
    """A read-only connection for the block, None where there is no database. Raises `CorruptDatabase`.

    Reading a WAL database usually makes files beside it. With `is_live`, when its writer runs and they are
    there anyway, it is read in place; else a sound one is opened as unchanging, and one whose writer was
    killed is read from a copy, since looking at its last commits would write.
    """
    if not path.exists():
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="lithos-") as folder:
        wal = path.with_name(path.name + "-wal")
        if is_live and wal.exists():
            uri = _uri(path, "mode=ro")
        elif wal.exists() and wal.stat().st_size:
            copy = Path(folder) / path.name
            for source, target in ((path, copy), (wal, copy.with_name(wal.name))):
                shutil.copyfile(source, target)
            uri = _uri(copy, "mode=rw")
        else:
            uri = _uri(path, "immutable=1")
        connection = _open(path, uri)
        try:
            yield connection
        finally:
            connection.close(True)


def _uri(path: Path, parameters: str) -> str:
    return f"file:{quote(str(path.absolute()))}?{parameters}"


def _open(path: Path, uri: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI if uri.endswith("mode=rw") else _READ
    connection = apsw.Connection(uri, flags=flags)
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        problem = connection.execute("PRAGMA quick_check(1)").fetchall()
    except (apsw.NotADBError, apsw.CorruptError) as damage:
        connection.close(True)
        raise CorruptDatabase(path, str(damage)) from damage
    if problem != [("ok",)]:
        connection.close(True)
        raise CorruptDatabase(path, str(problem[0][0]))
    return connection
