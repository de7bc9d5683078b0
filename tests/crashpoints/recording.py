"""Recorder of all changes that this process makes below a folder. It can also let some changes fail.

The hooks replace functions of `os`, `open`, the exchange of two names (`renameat2`, for which Python has no
function) and SQLite's VFS. They are therefore independent of Lithos. Real syncs are skipped. The record shows
which data they would make safe, and a run without syncs takes a fraction of the time.

Index folders (`REBUILDABLE`) are not recorded, because native libraries bypass these hooks.
"""

from __future__ import annotations

import builtins
import errno
import importlib.util
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

import apsw
import pytest
from attrs import define, field

from tests.crashpoints.disk import Cut, Disk, File, Folder, Named, Node, Operation, Synced, Written

REBUILDABLE = (".tantivy", ".usearch")
#: Calls that never fail. If this call failed after the link of a new note, the answer would be "nothing was
#: changed" although the note exists.
SPARED = {"unlink (temporary)"}
_SEAM = "lithos.notes.files.system_calls"
#: Module through which Lithos calls renameat2, if the module exists.
SYSTEM_CALLS: Any = importlib.import_module(_SEAM) if importlib.util.find_spec(_SEAM) else None
_EXCHANGE = 2
#: SQLite exceptions for these error numbers.
_DATABASE_ERRORS = {errno.ENOSPC: apsw.FullError, errno.EIO: apsw.IOError}


@define(eq=False)
class Recorder:
    """Record of all changes below `root`, which is empty at the start."""

    root: str
    #: Error numbers of the calls that must fail. The keys are call numbers.
    failing: Mapping[int, int] = field(factory=dict)
    log: list[Operation] = field(factory=list)
    #: Name of each operation, for error messages.
    names: list[str] = field(factory=list)
    #: Number of requested calls, including calls that failed.
    asked: int = 0
    failed: list[str] = field(factory=list)
    #: True while another program acts. Calls of other programs never fail.
    is_outside: bool = False
    lock: RLock = field(factory=RLock)
    tree: Folder = field(factory=Folder)
    descriptors: dict[int, Node] = field(factory=dict)

    # -- reports of the hooks ---------------------------------------------------------------------

    def find(self, path: str) -> tuple[Folder, str] | None:
        """Return the folder and the name of a path. Return None if the path is not recorded."""
        parts = self._parts(path)
        if not parts:
            return None
        folder = self.tree
        for part in parts[:-1]:
            following = folder.entries.get(part)
            if not isinstance(following, Folder):
                return None
            folder = following
        return folder, parts[-1]

    def node(self, path: str) -> Node | None:
        """Return the file or folder at a path."""
        if os.path.realpath(path) == self.root:
            return self.tree
        place = self.find(path)
        return place and place[0].entries.get(place[1])

    def _parts(self, path: str) -> list[str]:
        folder, name = os.path.split(os.path.abspath(path))
        real = os.path.join(os.path.realpath(folder), name)
        if not real.startswith(self.root + os.sep):
            return []
        parts = real[len(self.root) + 1 :].split(os.sep)
        return [] if parts[0] in REBUILDABLE else parts

    def ask(self, what: str) -> None:
        """Count a call before it is made. Raise `OSError` if the call must fail."""
        if self.is_outside:
            return
        number, self.asked = self.asked, self.asked + 1
        if number in self.failing and what not in SPARED:
            self.failed.append(what)
            code = self.failing[number]
            raise OSError(code, f"{os.strerror(code)} (injected: {what})")

    def note(self, what: str, operation: Operation) -> None:
        """Record an operation after it was made."""
        self.log.append(operation)
        self.names.append(what)
        if isinstance(operation, Named):
            for folder, name, node in operation.changes:
                folder.entries.pop(name, None)
                if node is not None:
                    folder.entries[name] = node

    def set_names(self, what: str, *changes: tuple[str, Node | None]) -> None:
        """Record names that were set or removed together."""
        found = [(self.find(path), node) for path, node in changes]
        known = tuple((place[0], place[1], node) for place, node in found if place is not None)
        if known:
            self.note(what, Named(known))

    def replay(self) -> Iterator[tuple[int, Disk]]:
        """Yield the disk before the first operation and after each operation.

        The same disk object is yielded each time.
        """
        for node in _nodes(self.log, self.tree):
            node.safe = type(node.safe)()
            if isinstance(node, File):
                node.content, node.pending = bytearray(), []
            else:
                node.entries = {}
        disk = Disk(self.tree)
        yield 0, disk
        for number, operation in enumerate(self.log, 1):
            disk.apply(operation)
            yield number, disk


def _nodes(log: list[Operation], root: Folder) -> list[Node]:
    nodes: dict[int, Node] = {id(root): root}
    for operation in log:
        if isinstance(operation, Named):
            nodes |= {id(node): node for _, _, node in operation.changes if node is not None}
    return list(nodes.values())


@contextmanager
def recording(root: Path, failing: Mapping[int, int] | None = None) -> Iterator[Recorder]:
    """Record all changes below the empty folder `root`."""
    recorder = Recorder(os.path.realpath(root), failing or {})
    with pytest.MonkeyPatch.context() as patch, _databases(recorder):
        calls = _Calls(recorder)
        for name in _Calls.HOOKED:
            patch.setattr(os, name, getattr(calls, name))
        if SYSTEM_CALLS is not None:
            calls.rename_with_flags = SYSTEM_CALLS._rename_with
            patch.setattr(SYSTEM_CALLS, "_rename_with", calls.rename_with)
        patch.setattr(io, "open", calls.open_file)
        patch.setattr(builtins, "open", calls.open_file)
        patch.setattr(sys, "unraisablehook", _ignore_injected(sys.unraisablehook))
        yield recorder
        recorder.is_outside = True  # files that are closed after the recording are not recorded


def _ignore_injected(tell: Callable[[Any], object]) -> Callable[[Any], object]:
    """Hide injected errors of garbage-collected connections, because no code handles these errors."""

    def hook(unraisable: Any) -> None:
        if not isinstance(unraisable.exc_value, tuple(_DATABASE_ERRORS.values())):
            tell(unraisable)

    return hook


@contextmanager
def unsynced() -> Iterator[None]:
    """Skip all syncs, for tests without a power loss."""

    def check(descriptor: int) -> None:
        os.fstat(descriptor)

    with pytest.MonkeyPatch.context() as patch, _databases(None):
        patch.setattr(os, "fsync", check)
        yield


class _Calls:
    """Replacements for the functions of `os` that change data. Each call is recorded."""

    HOOKED = (
        "open", "close", "write", "pwrite", "fsync", "fdatasync", "ftruncate", "truncate",
        "rename", "replace", "link", "unlink", "remove", "mkdir", "rmdir",
    )  # fmt: skip

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._real: dict[str, Callable[..., Any]] = {name: getattr(os, name) for name in self.HOOKED}
        self._open_file = io.open
        self.rename_with_flags: Callable[[str, str, int], None] | None = None

    # -- files -----------------------------------------------------------------------------------

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        recorder, where = self._recorder, _resolve(path, dir_fd)
        with recorder.lock:
            place = recorder.find(where)
            creates = place is not None and flags & os.O_CREAT and not os.path.lexists(where)
            empties = place is not None and flags & os.O_TRUNC and not creates
            is_unnamed = flags & os.O_TMPFILE == os.O_TMPFILE and recorder.node(where) is not None
            if creates or empties or is_unnamed:
                recorder.ask(f"open {_shown(where)}")
            descriptor: int = self._real["open"](path, flags, mode, dir_fd=dir_fd)
            if creates:
                recorder.set_names(f"create {_shown(where)}", (where, File()))
            node = File() if is_unnamed else recorder.node(where)
            if node is not None:
                recorder.descriptors[descriptor] = node
                if empties and isinstance(node, File):
                    recorder.note(f"empty {_shown(where)}", Cut(node, 0, os.fstat(descriptor).st_mtime_ns))
            else:
                recorder.descriptors.pop(descriptor, None)
            return descriptor

    def close(self, descriptor: int) -> None:
        with self._recorder.lock:
            self._recorder.descriptors.pop(descriptor, None)
            self._real["close"](descriptor)

    def write(self, descriptor: int, data: Any) -> int:
        return self._put("write", descriptor, data, None)

    def pwrite(self, descriptor: int, data: Any, offset: int) -> int:
        return self._put("pwrite", descriptor, data, offset)

    def _put(self, call: str, descriptor: int, data: Any, offset: int | None) -> int:
        recorder = self._recorder
        extra = () if offset is None else (offset,)
        with recorder.lock:
            file = recorder.descriptors.get(descriptor)
            if not isinstance(file, File):
                return int(self._real[call](descriptor, data, *extra))
            recorder.ask(call)
            start = os.lseek(descriptor, 0, os.SEEK_CUR) if offset is None else offset
            written = int(self._real[call](descriptor, data, *extra))
            kept = bytes(memoryview(data).cast("B")[:written])
            recorder.note(call, Written(file, start, kept, os.fstat(descriptor).st_mtime_ns))
            return written

    def fsync(self, descriptor: int) -> None:
        recorder = self._recorder
        with recorder.lock:
            node = recorder.descriptors.get(descriptor)
            if node is None:
                os.fstat(descriptor)
                return
            what = "fsync" if isinstance(node, File) else "fsync of a folder"
            recorder.ask(what)
            recorder.note(what, Synced(node))

    fdatasync = fsync

    def ftruncate(self, descriptor: int, length: int) -> None:
        recorder = self._recorder
        with recorder.lock:
            file = recorder.descriptors.get(descriptor)
            if isinstance(file, File):
                recorder.ask("ftruncate")
            self._real["ftruncate"](descriptor, length)
            if isinstance(file, File):
                recorder.note("ftruncate", Cut(file, length, os.fstat(descriptor).st_mtime_ns))

    def truncate(self, path: Any, length: int) -> None:
        if isinstance(path, int):
            self.ftruncate(path, length)
            return
        descriptor = self.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            self.ftruncate(descriptor, length)
        finally:
            self.close(descriptor)

    # -- names -----------------------------------------------------------------------------------

    def rename(
        self, source: Any, target: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
    ) -> None:
        one, other = _resolve(source, src_dir_fd), _resolve(target, dst_dir_fd)
        with self._naming("rename", one, other) as recorder:
            self._real["rename"](source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
            what = f"rename {_shown(one)} -> {_shown(other)}"
            if (node := recorder.node(one)) is None or node is not recorder.node(other):
                recorder.set_names(what, (one, None), (other, node))

    replace = rename

    def rename_with(self, source: str, target: str, flags: int) -> None:
        """Record `renameat2`, which exchanges two names or sets a new name."""
        assert self.rename_with_flags is not None
        with self._naming("renameat2", source, target) as recorder:
            self.rename_with_flags(source, target, flags)
            one, other = recorder.node(source), recorder.node(target)
            what = f"renameat2 {_shown(source)} -> {_shown(target)}"
            recorder.set_names(what, (source, other if flags == _EXCHANGE else None), (target, one))

    def link(
        self,
        source: Any,
        target: Any,
        *,
        src_dir_fd: int | None = None,
        dst_dir_fd: int | None = None,
        follow_symlinks: bool = True,
    ) -> None:
        one, other = _resolve(source, src_dir_fd), _resolve(target, dst_dir_fd)
        with self._naming("link", one, other) as recorder:
            self._real["link"](
                source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, follow_symlinks=follow_symlinks
            )
            descriptor = one.removeprefix("/proc/self/fd/")
            node = recorder.node(one) if descriptor == one else recorder.descriptors[int(descriptor)]
            recorder.set_names(f"link {_shown(one)} -> {_shown(other)}", (other, node))

    def unlink(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._take_away("unlink", path, dir_fd)

    remove = unlink

    def rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        self._take_away("rmdir", path, dir_fd)

    def _take_away(self, call: str, path: Any, dir_fd: int | None) -> None:
        where = _resolve(path, dir_fd)
        with self._naming(call, where) as recorder:
            self._real[call](path, dir_fd=dir_fd)
            recorder.set_names(f"{call} {_shown(where)}", (where, None))

    def mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        where = _resolve(path, dir_fd)
        with self._naming("mkdir", where) as recorder:
            self._real["mkdir"](path, mode, dir_fd=dir_fd)
            recorder.set_names(f"mkdir {_shown(where)}", (where, Folder()))

    @contextmanager
    def _naming(self, call: str, *paths: str) -> Iterator[Recorder]:
        """Count and record one change of names. A call that would fail anyway is not counted."""
        recorder = self._recorder
        with recorder.lock:
            exists = os.path.lexists(paths[0]) != (call == "mkdir")
            if exists and any(recorder.find(path) for path in paths):
                recorder.ask(f"{call} {' '.join(map(_shown, paths))}")
            yield recorder

    # -- open() ----------------------------------------------------------------------------------

    def open_file(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        is_known = isinstance(file, int) and file in self._recorder.descriptors
        is_below = not isinstance(file, int) and self._recorder.find(os.fspath(file)) is not None
        if not (set(mode) & set("wax+")) or not (is_known or is_below):
            return self._open_file(file, mode, buffering, encoding, errors, newline, closefd, opener)
        descriptor = file if isinstance(file, int) else self.open(file, _flags_of(mode), 0o666)
        raw = _RawFile(descriptor, mode.replace("t", "").replace("x", "w"), closefd, self)
        if "a" in mode:
            raw.seek(0, os.SEEK_END)
        if buffering == 0:
            return raw
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)


class _RawFile(io.FileIO):
    """A file whose writes are recorded."""

    def __init__(self, descriptor: int, mode: str, closefd: bool, calls: _Calls) -> None:
        super().__init__(descriptor, mode, closefd)
        self._calls = calls

    def write(self, data: Any) -> int:
        return self._calls.write(self.fileno(), data)

    def truncate(self, size: int | None = None) -> int:
        length = self.tell() if size is None else size
        self._calls.ftruncate(self.fileno(), length)
        return length

    def close(self) -> None:
        if not self.closed:
            self._calls._recorder.descriptors.pop(self.fileno(), None)
        super().close()


def _flags_of(mode: str) -> int:
    flags = os.O_CLOEXEC | (os.O_RDWR if "+" in mode else os.O_WRONLY)
    if "w" in mode:
        return flags | os.O_CREAT | os.O_TRUNC
    if "x" in mode:
        return flags | os.O_CREAT | os.O_EXCL
    return flags | (os.O_CREAT | os.O_APPEND if "a" in mode else 0)


def _resolve(path: Any, dir_fd: int | None) -> str:
    if isinstance(path, int):
        return os.readlink(f"/proc/self/fd/{path}")
    text = os.fsdecode(path)
    return text if dir_fd is None else os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), text)


def _shown(path: str) -> str:
    """Return the file name for a message. Random parts are left out."""
    if path.startswith("/proc/self/fd/"):
        return "(unnamed)"
    name = os.path.basename(path)
    return "(temporary)" if name.startswith(".lithos-") else name


# -- SQLite --------------------------------------------------------------------------------------


class _DatabaseFile(apsw.VFSFile):
    def __init__(self, disk: _DatabaseDisk, name: Any, flags: Any) -> None:
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._recorder = recorder = disk.recorder
        is_new = self._path is not None and not os.path.lexists(self._path)
        if (
            recorder is not None
            and is_new
            and recorder.find(self._path)
            and flags[0] & apsw.SQLITE_OPEN_CREATE
        ):
            disk.ask(f"create {_shown(self._path)}")
        super().__init__(disk.base, name, flags)
        self._ask = disk.ask
        self._file: Node | None = None
        #: SQLite syncs the folder when it first syncs a log or journal (os_unix.c, UNIXFILE_DIRSYNC).
        kinds = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
        self._syncs_folder = bool(flags[0] & kinds and flags[0] & apsw.SQLITE_OPEN_CREATE)
        if recorder is not None and self._path is not None:
            with recorder.lock:
                if recorder.find(self._path) and recorder.node(self._path) is None:
                    recorder.set_names(f"create {_shown(self._path)}", (self._path, File()))
                self._file = recorder.node(self._path)

    def xWrite(self, data: bytes, offset: int) -> None:
        with self._noting(f"write {_shown(self._path or '')}") as note:
            super().xWrite(data, offset)
            note(lambda file, now: Written(file, offset, bytes(data), now))

    def xTruncate(self, size: int) -> None:
        with self._noting(f"truncate {_shown(self._path or '')}") as note:
            super().xTruncate(size)
            note(lambda file, now: Cut(file, size, now))

    def xSync(self, flags: int) -> None:
        with self._noting(f"sync {_shown(self._path or '')}") as note:
            note(lambda file, _: Synced(file))
            if self._syncs_folder and self._recorder is not None and self._path is not None:
                self._syncs_folder = False
                place = self._recorder.find(self._path)
                if place is not None:
                    self._recorder.note("sync of a folder", Synced(place[0]))

    def excepthook(self, *_: Any) -> None:
        """Ignore a failed call that SQLite cannot report, for example when it closes a file."""

    @contextmanager
    def _noting(self, what: str) -> Iterator[Callable[[Callable[[File, int], Operation]], None]]:
        recorder, file = self._recorder, self._file
        if recorder is None or not isinstance(file, File):
            yield lambda _: None
            return
        with recorder.lock:
            self._ask(what)
            assert self._path is not None
            yield lambda make: recorder.note(what, make(file, os.stat(self._path).st_mtime_ns))


class _DatabaseDisk(apsw.VFS):
    """SQLite's file access. It is recorded. If there is no recorder, syncs are skipped."""

    def __init__(self, recorder: Recorder | None) -> None:
        self.base = apsw.vfs_names()[0]
        self.recorder = recorder
        super().__init__("lithos-recorded", self.base, makedefault=True)

    def xOpen(self, name: Any, flags: Any) -> apsw.VFSFile:
        return _DatabaseFile(self, name, flags)

    def xDelete(self, path: str, syncdir: bool) -> None:
        if self.recorder is None or self.recorder.find(path) is None:
            super().xDelete(path, syncdir)
            return
        with self.recorder.lock:
            self.ask(f"delete {_shown(path)}")
            super().xDelete(path, syncdir)
            self.recorder.set_names(f"delete {_shown(path)}", (path, None))
            place = self.recorder.find(path)
            if syncdir and place is not None:
                self.recorder.note("sync of a folder", Synced(place[0]))

    def excepthook(self, *_: Any) -> None:
        """Ignore a failed call that SQLite cannot report."""

    def ask(self, what: str) -> None:
        """Count a call as `Recorder.ask` does. Raise the exception that belongs to SQLite's error."""
        assert self.recorder is not None
        try:
            self.recorder.ask(what)
        except OSError as failure:
            raise _DATABASE_ERRORS.get(failure.errno or 0, apsw.IOError)("injected") from None


@contextmanager
def _databases(recorder: Recorder | None) -> Iterator[None]:
    disk = _DatabaseDisk(recorder)
    try:
        yield
    finally:
        apsw.set_default_vfs(disk.base)
        disk.unregister()
