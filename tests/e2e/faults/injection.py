"""Storage below Lithos that fails on request, for note files and for SQLite files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import pytest


@contextmanager
def failing_fsync(code: int) -> Iterator[None]:
    """Let the fsync of note files fail. The fsync of their folders still works."""
    real = os.fsync

    def fsync(descriptor: int) -> None:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        if is_file and "/knowledge/" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(code, os.strerror(code))
        real(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


class _File(apsw.VFSFile):
    def __init__(self, owner: FaultyDisk, name: Any, flags: Any) -> None:
        super().__init__(owner.base, name, flags)
        self._owner = owner
        self._name = os.path.basename(name.filename() if isinstance(name, apsw.URIFilename) else str(name))

    def xWrite(self, data: bytes, offset: int) -> None:
        self._owner.fail(self._name)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._owner.fail(self._name)
        super().xSync(flags)


class FaultyDisk(apsw.VFS):
    """SQLite file layer (VFS) that can refuse writes to the files of one database."""

    def __init__(self) -> None:
        self.base = apsw.vfs_names()[0]
        super().__init__("lithos-faulty", self.base, makedefault=True)
        self._database: str | None = None
        self._error: type[apsw.Error] = apsw.FullError
        #: Number of refused writes and syncs.
        self.refused = 0

    def xOpen(self, name: Any, flags: Any) -> apsw.VFSFile:
        return _File(self, name, flags)

    def fail(self, name: str) -> None:
        if self._database is not None and name.startswith(self._database):
            self.refused += 1
            raise self._error("injected")

    @contextmanager
    def refusing(self, database: str, error: type[apsw.Error]) -> Iterator[None]:
        """Refuse writes to this database and to its write-ahead log."""
        self._database, self._error = database, error
        try:
            yield
        finally:
            self._database = None


@contextmanager
def faulty_disk() -> Iterator[FaultyDisk]:
    """Put all databases that are opened during the block on a disk that can fail."""
    disk = FaultyDisk()
    try:
        yield disk
    finally:
        apsw.set_default_vfs(disk.base)
        disk.unregister()
