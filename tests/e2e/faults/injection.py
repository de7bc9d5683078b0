"""Storage that fails on demand where Lithos meets it: system calls, SQLite's files, index commits."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NoReturn

import apsw
import pytest

import lithos.stores.notes.replacing
from lithos.stores.indexes import IndexFailed
from lithos.stores.indexes.fulltext import FulltextIndex
from lithos.stores.indexes.vectors import VectorIndex
from lithos.stores.notes.system_calls import UNNAMED, KernelCalls

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
#: How SQLite calls them.
DATABASE_ERRORS = {errno.ENOSPC: apsw.FullError, errno.EIO: apsw.IOError, errno.EACCES: apsw.ReadOnlyError}
#: Where a change of a note can fail: the call, and whether it is one on a folder.
SITES = (
    "open", "write", "fsync", "folder fsync", "link_unnamed", "rename_new", "rename", "exchange", "unlink",
)  # fmt: skip


class _FailingOs(ModuleType):
    """The module `os`, but for one call."""

    def __init__(self, call: str, replacement: Any) -> None:
        super().__init__("os")
        self.__dict__.update(os.__dict__)
        setattr(self, call, replacement)


@contextmanager
def failing_calls(site: str, code: int) -> Iterator[None]:
    """Let a system call on note files, or on their folders, fail."""
    call = "rename" if site == "unlink" else site.rpartition(" ")[2]  # a file loses its name by renaming
    real, real_trial = getattr(KernelCalls, call), getattr(os, call, None)

    def fail(calls: KernelCalls, *arguments: Any) -> Any:
        if _is_meant(site, arguments):
            raise OSError(code, os.strerror(code))
        return real(calls, *arguments)

    def fail_trial(*arguments: Any) -> Any:
        assert real_trial is not None
        if _is_meant(site, arguments):
            raise OSError(code, os.strerror(code))
        return real_trial(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KernelCalls, call, fail)
        if site in ("rename_new", "rename"):  # which give a file its name only where it has had another
            patch.setattr(KernelCalls, "link_unnamed", _missing)
        patch.setattr(lithos.stores.notes.replacing, "os", _FailingOs(call, fail_trial))
        yield


def _missing(*_: Any) -> None:
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


def _is_meant(site: str, arguments: tuple[Any, ...]) -> bool:
    if site in ("fsync", "folder fsync"):
        return stat.S_ISDIR(os.fstat(arguments[0]).st_mode) == (site == "folder fsync")
    if site == "open":
        return bool(arguments[1] & os.O_CREAT) or arguments[1] == UNNAMED
    if site == "unlink":
        return not os.path.basename(arguments[0]).startswith(".")
    if site == "rename":
        return os.path.basename(arguments[0]).endswith(".tmp")
    return True


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
    """SQLite's way to its files, of which those of one database may refuse to be written."""

    def __init__(self) -> None:
        self.base = apsw.vfs_names()[0]
        super().__init__("lithos-faulty", self.base, makedefault=True)
        self._database: str | None = None
        self._error: type[apsw.Error] = apsw.FullError
        #: How often a write or sync was refused.
        self.refused = 0

    def xOpen(self, name: Any, flags: Any) -> apsw.VFSFile:
        return _File(self, name, flags)

    def fail(self, name: str) -> None:
        if self._database is not None and name.startswith(self._database):
            self.refused += 1
            raise self._error("injected")

    @contextmanager
    def refusing(self, database: str, error: type[apsw.Error]) -> Iterator[None]:
        """Refuse to write the database of this name, its write-ahead log included."""
        self._database, self._error = database, error
        try:
            yield
        finally:
            self._database = None


@contextmanager
def faulty_disk() -> Iterator[FaultyDisk]:
    """Databases that are opened in the block are on such a disk."""
    disk = FaultyDisk()
    try:
        yield disk
    finally:
        apsw.set_default_vfs(disk.base)
        disk.unregister()


@contextmanager
def failing_indexes(code: int, *, both: bool) -> Iterator[None]:
    """Let every commit of full text fail as its library fails, and `both`: the vectors too."""
    words = os.strerror(code)

    def fail_commit(*_: Any, **__: Any) -> NoReturn:
        raise OSError(code, words)

    def fail_vectors(*_: Any, **__: Any) -> NoReturn:
        raise IndexFailed(words)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FulltextIndex, "_commit", fail_commit)
        if both:
            patch.setattr(VectorIndex, "apply", fail_vectors)
        yield
