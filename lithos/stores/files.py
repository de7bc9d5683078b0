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

from lithos.stores.file_changes import (
    TEMPORARY_PREFIX,
    TEMPORARY_SUFFIX,
    carry_out,
    make_folders,
    sync_folder,
)
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
    state_of,
)
from lithos.stores.note_tree import is_inside, walk_notes

__all__ = [
    "TEMPORARY_PREFIX",
    "TEMPORARY_SUFFIX",
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
    "state_of",
]

#: Files that wait for the disk at once; it commits them together, which four at a time is enough for.
_AT_ONCE = 4

T = TypeVar("T")


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
                    for made in make_folders(os.path.dirname(target)):
                        folders.setdefault(made, []).append(number)
            except (OSError, OutsideKnowledge) as failure:
                results[number] = failure

        def change_file(target: str) -> None:
            for number in targets[target]:  # in order: the first creation of a file wins
                if results[number] is None:
                    results[number] = carry_out(changes[number], target)

        self._do_all(change_file, targets)
        for target, numbers in targets.items():
            carried_out = [number for number in numbers if not isinstance(results[number], Exception)]
            if carried_out:
                folders.setdefault(os.path.dirname(target), []).extend(carried_out)
        self._do_all(lambda folder: sync_folder(folder, folders[folder], results), folders)
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
