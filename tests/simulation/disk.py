"""Simulated file system: real files in memory, failures, and the state after a crash.

Every change below one folder passes the hooks of `tests.crashpoints.recording`. It is applied to the model of
`tests.crashpoints.disk` at once. Before each call of the server, other parties may act, the call may fail, or
the process may die. File times are virtual and advance in the steps of a kernel clock.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import define, field

import lithos.notes.files.files
import lithos.notes.files.tree
import lithos.notes.watching.notifications
import lithos.notes.watching.watcher
from lithos.notes.files.system_calls import KernelCalls
from tests.crashpoints.disk import Disk, File, Folder, Image, Node, Operation, build
from tests.crashpoints.recording import REBUILDABLE, SPARED, SYSTEM_CALLS, Recorder, _Calls, _DatabaseDisk
from tests.simulation.loop import Killed, SimulatedClock, Workers, running_process

#: Nanoseconds between two ticks of the file time clock.
TICK_NS = 4_000_000
CODES = (errno.ENOSPC, errno.EIO)


@define
class Faults:
    """Fraction of calls that fail, and fraction of writes that are too short, while failures are on."""

    share: float = 0.0
    short: float = 0.0
    codes: tuple[int, ...] = CODES
    is_on: bool = False
    happened: int = 0


@define(eq=False)
class SimulatedDisk(Recorder):
    """The disk of one run. After each crash, `root` is a new folder."""

    clock: SimulatedClock = field(kw_only=True)
    random: Random = field(kw_only=True)
    faults: Faults = field(factory=Faults)
    model: Disk = field(init=False)
    #: Function that gets the path of every changed note, folder or other file in the notes folder.
    on_touch: Callable[[str], None] = field(default=lambda _: None)
    #: Function that is called before each call of the server, so that other parties can act.
    reach: Callable[[], None] = field(default=lambda: None)
    #: Number of the call at which the process crashes.
    crash_at: int | None = None
    crash: Callable[[], None] = field(default=lambda: None)
    #: True while the files of a dead process are being closed.
    is_muted: bool = False
    #: Time of the last change in nanoseconds. The keys are inode numbers.
    changed: dict[int, int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.model = Disk(self.tree)

    # -- calls and answers of the hooks -------------------------------------------------------------

    def _parts(self, path: str) -> list[str]:
        """Return the parts of a path like the base class. The folder contains no symbolic links."""
        full = (
            path
            if path.startswith("/") and "//" not in path and "/." not in path[-3:]
            else os.path.abspath(path)
        )
        if not full.startswith(self.root + os.sep):
            return []
        parts = full[len(self.root) + 1 :].split(os.sep)
        return [] if parts[0] in REBUILDABLE else parts

    def node(self, path: str) -> Node | None:
        if path.rstrip("/") == self.root:
            return self.tree
        place = self.find(path)
        return place and place[0].entries.get(place[1])

    def ask(self, what: str) -> None:
        if self.is_outside:
            return
        self.look_around()
        self.asked += 1
        if self.crash_at is not None and self.asked >= self.crash_at:
            self.crash_at = None
            self.crash()
            raise Killed
        faults = self.faults
        if faults.is_on and what not in SPARED and self.random.random() < faults.share:
            faults.happened += 1
            code = self.random.choice(faults.codes)
            raise OSError(code, f"{os.strerror(code)} (injected: {what})")

    def look_around(self) -> None:
        """Let other parties act before a call. Raise if the process is dead."""
        process = running_process()
        if process is not None:
            if process.is_dead:
                raise Killed
            if not self.is_outside:
                with self.outside():
                    self.reach()

    def note(self, what: str, operation: Operation) -> None:
        if not self.is_muted:
            self.model.apply(operation)

    def set_names(self, what: str, *changes: tuple[str, Node | None]) -> None:
        super().set_names(what, *changes)
        for path, _ in changes:
            self.touched(path)

    def touched(self, path: str) -> None:
        """Notify listeners that a path has changed. An unnamed file has no path."""
        below = self.root + "/knowledge/"
        if path.startswith(below) and not path.endswith(" (deleted)"):
            self.on_touch(path[len(below) :])

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Attribute all calls in the block to other programs. Such calls never fail."""
        was, self.is_outside = self.is_outside, True
        try:
            yield
        finally:
            self.is_outside = was

    def tick(self) -> int:
        """Return the current file time in nanoseconds."""
        return self.clock.wall_ns() // TICK_NS * TICK_NS

    def stamp(self, where: int | str, node: Node | None = None) -> None:
        """Set the modification time of a written file to the current file time."""
        now = self.tick()
        os.utime(where, ns=(now, now))
        self.changed[os.stat(where).st_ino] = now
        if isinstance(node, File):
            node.mtime_ns = now

    def set_back(self, path: str, mtime_ns: int) -> None:
        """Set an old modification time, as a sync client does that preserves times."""
        os.utime(path, ns=(mtime_ns, mtime_ns))
        self.changed[os.stat(path).st_ino] = self.tick()
        node = self.node(path)
        if isinstance(node, File):
            node.mtime_ns = mtime_ns

    def named(self, path: str) -> None:
        """Record that a name of this file changed."""
        self.changed[os.lstat(path).st_ino] = self.tick()

    def status(self, real: os.stat_result) -> os.stat_result:
        """Return the status of a file. The virtual time of its last change replaces the real time."""
        if not stat.S_ISREG(real.st_mode):
            return real
        at = self.changed.get(real.st_ino, real.st_mtime_ns)
        more = {
            "st_mtime_ns": real.st_mtime_ns,
            "st_ctime_ns": at,
            "st_mtime": real.st_mtime_ns / 1e9,
            "st_ctime": at / 1e9,
        }
        return os.stat_result(tuple(real)[:10], more)

    # -- crashes ---------------------------------------------------------------------------------

    def kill(self, target: Path) -> None:
        """Kill the process. All data that it wrote are kept in a new folder."""
        with self.outside():
            _copy(Path(self.root), target, self)
        self._go_on(target)

    def cut_power(self, target: Path) -> str:
        """Cut the power. Only some unsynced data are kept. Return the kind of loss."""
        kinds: dict[str, Callable[[], Image]] = {
            "nothing unsynced": self.model.after_power_loss,
            "names first": self.model.after_late_data,
            "luck": lambda: self.model.after_luck(self.random),
        }
        kind = self.random.choice(sorted(kinds))
        image = kinds[kind]()
        with self.outside():
            build(image, target)
            for name in REBUILDABLE:
                self._lose_some(Path(self.root) / name, target / name)
        self.tree = _adopt(target)
        self.model = Disk(self.tree)
        self._go_on(target)
        return kind

    def _lose_some(self, source: Path, target: Path) -> None:
        """Keep all, none or truncated versions of the rebuildable files, which bypass the hooks."""
        luck = self.random.randrange(3)
        if luck == 0 or not source.is_dir():
            return
        shutil.copytree(source, target)
        if luck == 1:
            for file in sorted(path for path in target.rglob("*") if path.is_file()):
                if self.random.random() < 0.2:
                    data = file.read_bytes()
                    file.write_bytes(data[: len(data) // 2])

    def _go_on(self, target: Path) -> None:
        self.root = str(target)
        self.descriptors.clear()


def _copy(source: Path, target: Path, disk: SimulatedDisk) -> None:
    target.mkdir()
    for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
        if entry.is_dir(follow_symlinks=False):
            _copy(Path(entry.path), target / entry.name, disk)
            continue
        try:
            shutil.copy2(entry.path, target / entry.name)
        except FileNotFoundError:
            # A separate thread of the index removes these files.
            continue
        known = disk.changed.get(entry.inode())
        if known is not None:
            disk.changed[os.stat(target / entry.name).st_ino] = known


def _adopt(folder: Path) -> Folder:
    """Return the nodes of an existing folder. All nodes count as synced."""
    found = Folder()
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name in REBUILDABLE:
            continue
        if entry.is_dir(follow_symlinks=False):
            node: Node = _adopt(Path(entry.path))
        else:
            data = Path(entry.path).read_bytes()
            node = File(bytearray(data), data, mtime_ns=entry.stat().st_mtime_ns)
        found.entries[entry.name] = found.safe[entry.name] = node
    return found


class _TimedCalls(_Calls):
    """File system hooks with virtual times and short writes."""

    _recorder: SimulatedDisk

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        descriptor = super().open(path, flags, mode, dir_fd=dir_fd)
        disk = self._recorder
        node = disk.descriptors.get(descriptor)
        is_new = flags & os.O_CREAT or flags & os.O_TMPFILE == os.O_TMPFILE
        if isinstance(node, File) and (flags & os.O_TRUNC or (is_new and not node.mtime_ns)):
            disk.stamp(descriptor, node)
            disk.touched(os.readlink(f"/proc/self/fd/{descriptor}"))
        return descriptor

    def _put(self, call: str, descriptor: int, data: Any, offset: int | None) -> int:
        disk = self._recorder
        node = disk.descriptors.get(descriptor)
        if not isinstance(node, File):
            return super()._put(call, descriptor, data, offset)
        faults = disk.faults
        if faults.is_on and not disk.is_outside and len(data) > 1 and disk.random.random() < faults.short:
            faults.happened += 1
            data = memoryview(data).cast("B")[: disk.random.randrange(1, len(data))]
        written = super()._put(call, descriptor, data, offset)
        disk.stamp(descriptor, node)
        disk.touched(os.readlink(f"/proc/self/fd/{descriptor}"))
        return written

    def ftruncate(self, descriptor: int, length: int) -> None:
        super().ftruncate(descriptor, length)
        disk = self._recorder
        node = disk.descriptors.get(descriptor)
        if isinstance(node, File):
            disk.stamp(descriptor, node)
            disk.touched(os.readlink(f"/proc/self/fd/{descriptor}"))

    def rename(
        self, source: Any, target: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
    ) -> None:
        super().rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        if dst_dir_fd is None and self._recorder.find(os.fsdecode(target)):
            self._recorder.named(os.fsdecode(target))

    replace = rename

    def rename_with(self, source: str, target: str, flags: int) -> None:
        super().rename_with(source, target, flags)
        for path in (source, target):
            if os.path.lexists(path):
                self._recorder.named(path)

    def link(self, source: Any, target: Any, **more: Any) -> None:
        super().link(source, target, **more)
        if self._recorder.find(os.fsdecode(target)):
            self._recorder.named(os.fsdecode(target))


def _looking(disk: SimulatedDisk, name: str) -> Callable[..., Any]:
    real = getattr(KernelCalls, name)

    def call(self: KernelCalls, *arguments: Any) -> Any:
        disk.look_around()
        faults = disk.faults
        is_read = name in ("read", "open") and faults.is_on and not disk.is_outside
        if is_read and disk.random.random() < faults.share:
            faults.happened += 1
            raise OSError(errno.EIO, f"{os.strerror(errno.EIO)} (injected: {name})")
        result = real(self, *arguments)
        return disk.status(result) if isinstance(result, os.stat_result) else result

    return call


@contextmanager
def attached(disk: SimulatedDisk, workers: Workers) -> Iterator[None]:
    """During the block, route all calls below the disk's folder through the disk."""
    databases = _DatabaseDisk(disk)
    walk = lithos.notes.files.tree.walk_notes

    def walk_notes(*arguments: Any) -> Iterator[tuple[str, os.stat_result]]:
        for path, status in walk(*arguments):
            yield path, disk.status(status)

    def sleep(_: KernelCalls, seconds: float) -> None:
        workers.slept += seconds
        disk.look_around()

    with pytest.MonkeyPatch.context() as patch:
        calls = _TimedCalls(disk)
        for name in _Calls.HOOKED:
            patch.setattr(os, name, getattr(calls, name))
        calls.rename_with_flags = SYSTEM_CALLS._rename_with
        patch.setattr(SYSTEM_CALLS, "_rename_with", calls.rename_with)
        patch.setattr(io, "open", calls.open_file)
        patch.setattr(builtins, "open", calls.open_file)
        for name in ("open", "read", "fstat", "lstat", "lease", "is_leased"):
            patch.setattr(KernelCalls, name, _looking(disk, name))
        patch.setattr(KernelCalls, "sleep", sleep)
        patch.setattr(lithos.notes.files.files, "walk_notes", walk_notes)
        patch.setattr(lithos.notes.watching.notifications, "count_watches", lambda: None)
        try:
            yield
        finally:
            disk.is_outside = True
            import apsw  # noqa: PLC0415 - beside its use

            apsw.set_default_vfs(databases.base)
            databases.unregister()
