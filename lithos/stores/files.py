"""Note files on disk: listing, reading, and durable writing.

A write is temporary file, fsync, rename, fsync of the folder; a deletion is unlink and fsync of
the folder. Several writes share the folder syncs, and wait for the disk at the same time (group
commit). Readers see the old file or the new one, never a part. Temporary files are dot-named, so
nothing ever takes them for notes.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from attrs import frozen

from lithos.stores.file_values import (
    FileChanged,
    FileOccupied,
    FileState,
    FoundFile,
    NotSynced,
    OutsideKnowledge,
    Put,
    ReadFile,
    Remove,
)
from lithos.stores.note_tree import is_inside, walk_notes

__all__ = [
    "FileChanged",
    "FileOccupied",
    "FileState",
    "FoundFile",
    "NotSynced",
    "NoteFiles",
    "OutsideKnowledge",
    "Put",
    "ReadFile",
    "Remove",
]

TEMPORARY_PREFIX = ".lithos-"
TEMPORARY_SUFFIX = ".tmp"
#: What SQLite's integers hold; some file systems have later times, and no one compares those.
_LATEST_NS = 2**63 - 1
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


#: Files that wait for the disk at once; it commits them together, which four at a time is enough for.
_AT_ONCE = 4

T = TypeVar("T")


@frozen
class _Staged:
    target: str
    temporary: str
    state: FileState


class NoteFiles:
    """The folder `knowledge/`. Every method blocks; call it from a worker thread."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._real_root = os.path.realpath(root)
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="note-files")
        self.root_was_missing = False

    def create_root(self) -> None:
        """Make the folder if it is missing, and remember that it was."""
        self.root_was_missing = not self.root.is_dir()
        self.root.mkdir(parents=True, exist_ok=True)
        self._real_root = os.path.realpath(self.root)

    def list_notes(self) -> list[FoundFile]:
        """Every `.md` file, in sorted path order.

        Dot-names are ignored, as is what a symlink reaches outside the folder. A folder that
        symlinks lead to is visited once, by its own name if it has one here, so loops end.
        """
        found = [FoundFile(path, state_of(status)) for path, status in self.walk()]
        found.sort(key=lambda file: file.path)
        return found

    def walk(self) -> Iterator[tuple[str, os.stat_result]]:
        """What `list_notes` lists, each file looked at as it is met, in no order."""
        return walk_notes(self._find_root())

    def read(self, path: str) -> ReadFile:
        """Read one note. Raises `OSError`, or `OutsideKnowledge`."""
        with open(self._locate(path), "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise FileNotFoundError(errno.ENOENT, "There is no file, but something else", path)
            return ReadFile(file.read(), state_of(status))

    def apply(self, changes: Sequence[Put | Remove]) -> list[FileState | Exception | None]:
        """Carry out the changes and make them durable together.

        Per change: the new state of a written file, `None` for a removed one, or the exception that
        stopped it (`OSError`, `FileChanged`, `FileOccupied`, `OutsideKnowledge`). A failed change
        leaves its old file as it was and no temporary file; only `NotSynced` tells of one that is
        carried out.
        """
        results: list[FileState | Exception | None] = [None] * len(changes)
        folders: dict[str, list[int]] = {}
        targets: dict[str, list[int]] = {}
        for number, change in enumerate(changes):
            try:
                target = self._locate(change.path)
                targets.setdefault(target, []).append(number)
                if isinstance(change, Put):
                    for made in _make_folders(os.path.dirname(target)):
                        folders.setdefault(made, []).append(number)
            except (OSError, OutsideKnowledge) as failure:
                results[number] = failure

        def change_file(target: str) -> None:
            for number in targets[target]:  # in order: the first creation of a file wins
                if results[number] is None:
                    results[number] = _carry_out(changes[number], target)

        self._do_all(change_file, targets)
        for target, numbers in targets.items():
            carried_out = [number for number in numbers if not isinstance(results[number], Exception)]
            if carried_out:
                folders.setdefault(os.path.dirname(target), []).extend(carried_out)
        self._do_all(lambda folder: _sync_folder(folder, folders[folder], results), folders)
        return results

    def _do_all(self, work: Callable[[T], None], items: Iterable[T]) -> None:
        """Work on all at the same time, since most of it is waiting for the disk."""
        waiting = list(items)
        if len(waiting) == 1:
            work(waiting[0])
        elif waiting:
            list(self._pool.map(work, waiting))

    def sweep_temporary(self) -> int:
        """Remove temporary files that a killed process left behind; their number.

        One that cannot be removed stays: it is never taken for a note.
        """
        swept = 0
        for folder, folders, names in os.walk(self._find_root()):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                if name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX):
                    with suppress(OSError):
                        os.unlink(os.path.join(folder, name))
                        swept += 1
        return swept

    def _locate(self, path: str) -> str:
        """The real target of a relative path; raises `OutsideKnowledge`."""
        root = self._find_root()
        real = os.path.realpath(os.path.join(root, path))
        if not is_inside(real, root):
            raise OutsideKnowledge(path)
        return real

    def _find_root(self) -> str:
        """Where the folder really is: a symlink may lead elsewhere by now."""
        try:
            if os.path.samestat(os.stat(self.root), os.stat(self._real_root)):
                return self._real_root
        except OSError:
            pass  # it is gone, or moved
        self._real_root = os.path.realpath(self.root)
        return self._real_root


def _open_at_once(path: str, flags: int) -> int:
    """Opening a named pipe would wait for a writer, for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


def state_of(status: os.stat_result) -> FileState:
    """The state that a look at a file shows."""
    return FileState(status.st_size, max(-_LATEST_NS, min(status.st_mtime_ns, _LATEST_NS)))


def _carry_out(change: Put | Remove, target: str) -> FileState | Exception | None:
    try:
        if isinstance(change, Put):
            return _put(change, target)
        os.unlink(target)
    except (OSError, FileChanged, FileOccupied) as failure:
        return failure
    return None


def _put(change: Put, target: str) -> FileState:
    staged = _stage(target, change)
    try:
        if change.expected is None:
            _place_new(staged)
        else:
            if _current_state(target) != change.expected:
                raise FileChanged(change.path)
            os.rename(staged.temporary, target)
    except BaseException:
        _discard(staged.temporary)
        raise
    return staged.state


def _stage(target: str, change: Put) -> _Staged:
    """Write the temporary file beside its target and sync it."""
    name = f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}{TEMPORARY_SUFFIX}"
    temporary = os.path.join(os.path.dirname(target), name)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            if change.expected is not None:
                _keep_mode(target, descriptor)
            _write_all(descriptor, change.data)
            os.fsync(descriptor)
            # Asked of our own file: after the rename it may be somebody else's edit already.
            state = state_of(os.fstat(descriptor))
        finally:
            os.close(descriptor)
    except BaseException:
        _discard(temporary)
        raise
    return _Staged(target, temporary, state)


def _sync_folder(folder: str, numbers: list[int], results: list[FileState | Exception | None]) -> None:
    try:
        _sync(folder)
    except OSError as failure:
        for number in numbers:
            result = results[number]
            if not isinstance(result, Exception):
                results[number] = NotSynced(failure, result)


def _current_state(target: str) -> FileState | None:
    try:
        return state_of(os.stat(target))
    except FileNotFoundError:
        return None


def _keep_mode(target: str, descriptor: int) -> None:
    try:
        os.fchmod(descriptor, stat.S_IMODE(os.stat(target).st_mode))
    except (FileNotFoundError, PermissionError):
        return  # vanished (the state check tells) or a file system without modes


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _place_new(staged: _Staged) -> None:
    """Give the temporary file its name only if nothing has it: a link never overwrites."""
    try:
        os.link(staged.temporary, staged.target)
    except FileExistsError:
        raise FileOccupied(staged.target) from None
    except OSError as failure:
        if failure.errno not in _NO_HARD_LINKS:
            raise
        if os.path.lexists(staged.target):
            raise FileOccupied(staged.target) from None
        os.rename(staged.temporary, staged.target)
        return
    os.unlink(staged.temporary)


def _make_folders(folder: str) -> list[str]:
    """Create missing folders; the folders whose entries changed and need a sync."""
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        try:
            os.mkdir(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
    return [os.path.dirname(path) for path in missing]


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _discard(temporary: str) -> None:
    try:
        os.unlink(temporary)
    except FileNotFoundError:
        return
