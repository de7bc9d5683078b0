"""Note files on disk: listing, reading, and atomic, durable writing.

A write is a file without a name, fsync, an atomic link or exchange (`replacing`), fsync of the folder.
Several writes share the folder syncs, and wait for the disk concurrently (group commit). Readers see the old
file or the new one, never a part. Temporary files are dot-named, so nothing ever takes them for notes.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from attrs import evolve

from lithos.notes.files.placeholders import find_in_cloud
from lithos.notes.files.protection import Protection, probe_protection
from lithos.notes.files.read_lease import SaveBytes, Watch, check_regular, recover_folder, settle
from lithos.notes.files.replacing import Replacing, check_writable, make_folders, sync_folder, try_writing
from lithos.notes.files.system_calls import KernelCalls, SystemCalls
from lithos.notes.files.tree import is_inside, resolve_below, walk_notes
from lithos.notes.files.values import (
    TEMPORARY_PREFIX,
    FileBusy,
    FileState,
    Fingerprint,
    FoundFile,
    Kept,
    LinkedFile,
    Move,
    OutsideKnowledge,
    PathRedirected,
    PrivateFolder,
    Put,
    ReadFile,
    Remove,
    state_of,
)
from lithos.notes.model.ignored import Ignored

#: The name of the folder in `.lithos` for exchanged files.
EXCHANGED: Final = "exchanged"
#: Concurrent file writes; the file system commits them together, for which four at a time are enough.
_AT_ONCE = 4

T = TypeVar("T")


class NoteFiles:
    """The folder of the notes: `knowledge/`, or a vault. Every method blocks; call it from a thread."""

    def __init__(
        self,
        root: Path,
        calls: SystemCalls | None = None,
        *,
        ignored: Ignored | None = None,
        is_foreign: bool = False,
        place: Path | None = None,
        reread: Callable[[], Ignored | None] | None = None,
    ) -> None:
        """Use a folder of notes: `ignored` files are not notes; a folder that `is_foreign` gets no files
        except notes.

        `reread` returns the ignored patterns after they have changed, else None. `place` is a folder for
        exchanged files, which is created; it is not used if it is on another volume.
        """
        self.root = root
        self.ignored = ignored or Ignored()
        self._reread = reread
        self.is_foreign = is_foreign
        self._calls = calls or KernelCalls()
        self._place = place
        self._replacing: Replacing | None = None
        #: Files displaced in `apply`, whose threads all append, until `take_kept`.
        self._kept: deque[Kept] = deque()
        self._real_root = os.path.realpath(root)
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="note-files")
        self.root_was_missing = False

    def create_root(self) -> None:
        """Create the folder if it is missing, and record that; a foreign folder is not created."""
        self.root_was_missing = not self.root.is_dir()
        if not self.is_foreign:
            self.root.mkdir(parents=True, exist_ok=True)
        self._real_root = os.path.realpath(self.root)

    def close(self) -> None:
        """End the threads that `apply` began; nothing is applied from now on."""
        self._pool.shutdown()

    def refresh_ignored(self) -> bool:
        """Apply the current patterns of ignored files; return True if the set of notes has changed.

        Blocks.
        """
        found = self._reread() if self._reread is not None else None
        if found is None or found == self.ignored:
            return False
        self.ignored = found
        return True

    def list_notes(self) -> list[FoundFile]:
        """Return every `.md` file, in sorted path order.

        Dot-names, `ignored` files, and files outside the folder that a symlink reaches are left out. A folder
        that symlinks lead to is visited once, by its own name if it has one here, so loops end.
        """
        found = [FoundFile(path, state_of(status)) for path, status in self.walk()]
        found.sort(key=lambda file: file.path)
        return found

    def walk(self) -> Iterator[tuple[str, os.stat_result]]:
        """Iterate over the files of `list_notes`, with the `stat` of each, in no order."""
        return walk_notes(self._find_root(), self.ignored)

    def read(self, path: str) -> ReadFile:
        """Read one note as it is now. Raises `OSError`, also `FileInCloud`, or `OutsideKnowledge`."""
        # O_NONBLOCK: opening a named pipe would wait for a writer, possibly without end.
        target = self._locate(path)
        try:
            descriptor = self._calls.open(target, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError as failure:
            raise find_in_cloud(target, path) or failure from None
        try:
            status = self._calls.fstat(descriptor)
            check_regular(status, path)
            return ReadFile(self._calls.read(descriptor), state_of(status))
        finally:
            self._calls.close(descriptor)

    def fingerprint(self, path: str) -> Fingerprint | None:
        """Return the fingerprint of a path; None if it is not a regular file.

        One system call, for any thread.
        """
        try:
            status = self._calls.lstat(os.path.join(self.root, path))
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        return Fingerprint(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        )

    def read_stable(self, path: str) -> tuple[ReadFile, Fingerprint | None]:
        """Read one note as `read` does, and the fingerprint by which it is known to be the same later.

        None where that could not be relied on: it was changed just now, or is reached by a symlink.
        """
        before = self.fingerprint(path)
        source = self.read(path)
        is_old = before is not None and before.is_old(self._calls.now())
        return source, before if is_old and self.fingerprint(path) == before else None

    def read_quiet(self, path: str, known: str | None = None) -> ReadFile:
        """Read a note consistently: not while another program is half way through a save.

        Bytes with the `known` digest, once stored or indexed as a whole, are accepted at once. Raises
        `FileBusy`, `OSError`, `OutsideKnowledge`.
        """
        target = self._locate(path)
        try:
            opened = Watch(self._calls, target, leases=self._has_leases)
        except FileNotFoundError as failure:
            raise find_in_cloud(target, path) or failure from None
        with opened as watch:
            source = watch.read()
            if (source.digest == known and source.data) or (watch.is_quiet() and watch.is_untouched()):
                return source
        raise FileBusy(path)

    @property
    def protection(self) -> Protection:
        """Capabilities of the file system, probed at the first use. Raises `OSError`."""
        return self._ready_replacing().protection

    @property
    def _has_leases(self) -> bool:
        # Only a change probes again: a read or a settling would create files while a change does so.
        if self._replacing is not None:
            return self._replacing.protection.leases
        try:
            return self.protection.leases
        except OSError:  # not a folder that anything can be written to
            return False

    def _ready_replacing(self) -> Replacing:
        if self._replacing is None or self._replacing.is_outdated:
            root = self._find_root()
            place = self._make_place(root)
            protection = probe_protection(self._calls, root, place.folder if place else None)
            usable = place if protection.reaches_place else None
            self._replacing = Replacing(self._calls, protection, self._kept.append, usable)
        return self._replacing

    def _make_place(self, root: str) -> PrivateFolder | None:
        """Return the folder for exchanged files, created if necessary; None if that fails."""
        if self._place is None:
            return None
        folder = os.path.realpath(self._place)
        try:
            with suppress(FileExistsError):
                self._calls.mkdir(folder)
        except OSError:
            return None
        return PrivateFolder(folder, root)

    def apply(self, changes: Sequence[Put | Remove | Move]) -> list[FileState | Exception | None]:
        """Apply a batch of changes and make them durable together (group commit).

        Returns per change the new state of a file that was written or moved, `None` for a removed one, or the
        exception that stopped it (`OSError`, `FileChanged`, `FileBusy`, `FileOccupied`, `OutsideKnowledge`,
        `PathRedirected`, `LinkedFile`).
        A failed change leaves its old file as it was and no temporary file; only `NotSynced` stands for one
        that is applied. Fetch the displaced files with `take_kept`.
        """
        try:
            replacing = self._ready_replacing()
        except OSError as failure:
            return [failure] * len(changes)
        results: list[FileState | Exception | None] = [None] * len(changes)
        targets, written, folders = self._find_targets(changes, results)

        def change_file(target: str) -> None:
            for number in targets[target]:  # in order: the first creation of a file wins
                change = changes[number]
                if results[number] is not None:
                    continue
                if isinstance(change, Move):
                    results[number] = replacing.move(target, change, written[number])
                else:
                    results[number] = replacing.carry_out(change, target)

        self._do_all(change_file, targets)
        for target, numbers in targets.items():
            for number in numbers:
                if not isinstance(results[number], Exception):
                    for folder in {os.path.dirname(target), os.path.dirname(written[number])}:
                        folders.setdefault(folder, []).append(number)
        self._do_all(lambda folder: sync_folder(self._calls, folder, folders[folder], results), folders)
        return results

    def _find_targets(
        self, changes: Sequence[Put | Remove | Move], results: list[FileState | Exception | None]
    ) -> tuple[dict[str, list[int]], dict[int, str], dict[str, list[int]]]:
        """Group the numbers of the changes by real file, set the file that each leaves, and group them by
        created parent folder.
        """
        folders: dict[str, list[int]] = {}
        targets: dict[str, list[int]] = {}
        written: dict[int, str] = {}
        root = self._find_root()
        for number, change in enumerate(changes):
            try:
                target, left = self._find_target(change, root)
                targets.setdefault(target, []).append(number)
                written[number] = left
                # A folder that an update finds missing was renamed: its old name stays free.
                if isinstance(change, Move) or (isinstance(change, Put) and change.expected is None):
                    self._refuse_placeholder(change.new if isinstance(change, Move) else change.path, left)
                    for made in make_folders(self._calls, os.path.dirname(left)):
                        folders.setdefault(made, []).append(number)
            except (OSError, OutsideKnowledge, PathRedirected, LinkedFile) as failure:
                results[number] = failure
        return targets, written, folders

    def _find_target(self, change: Put | Remove | Move, root: str) -> tuple[str, str]:
        """Return the real file of a change, and the real file that it leaves, which a move gives another
        name.

        Raises what `apply` returns.
        """
        target = self._locate_decided(change.path, change.real, root)
        if not isinstance(change, Put):
            self.refuse_link(change.path)
        if isinstance(change, Move):
            return target, self._locate_decided(change.new, change.real_new, root)
        return target, target

    def _refuse_placeholder(self, path: str, target: str) -> None:
        """Raise `FileInCloud` where a new file would take the place of one that is in the cloud alone."""
        away = find_in_cloud(target, path)
        if away is not None and not os.path.lexists(target):
            raise away

    def try_writing(self) -> None:
        """Raise `OSError` if notes could not be written now: by a trial, in a foreign folder by its state."""
        if self.is_foreign:
            check_writable(self.root)
        else:
            try_writing(self.root)

    def is_file(self, path: str) -> bool:
        """Return True when there is any file at this path, a note or not, within the folder."""
        target = os.path.normpath(os.path.join(self._find_root(), path))
        return is_inside(target, self._find_root()) and os.path.isfile(target)

    def take_kept(self) -> list[Kept]:
        """Drain the displaced files since the last call: settle each when its grace period ends."""
        kept: list[Kept] = []
        while self._kept:
            kept.append(self._kept.popleft())
        return kept

    def settle(self, kept: Kept, save: SaveBytes) -> None:
        """Unlink a displaced file, after saving bytes that another program wrote. `FileBusy`: retry later.

        `FileNotFoundError`: it is gone, or in a folder that was renamed (`find_renamed`).
        """
        settle(self._calls, kept, save, leases=self._has_leases)

    def find_renamed(self, lost: Sequence[Kept]) -> list[Kept]:
        """Return the current paths of the displaced files next to their notes that still exist."""
        wanted = {os.path.basename(each.path): each for each in lost if each.is_beside}
        found: list[Kept] = []
        for folder, names in self._find_private() if wanted else ():
            for name in wanted.keys() & set(names):
                note = os.path.join(folder, os.path.basename(wanted[name].note))
                found.append(evolve(wanted[name], path=os.path.join(folder, name), note=note))
        return found

    def _find_private(self) -> Iterator[tuple[str, list[str]]]:
        """Yield every folder of notes with files of ours, and their names."""
        for folder, folders, names in os.walk(self._find_root()):
            folders[:] = [name for name in folders if not name.startswith(".")]
            ours = [name for name in names if name.startswith(TEMPORARY_PREFIX)]
            if ours:
                yield folder, ours

    def relative(self, target: str) -> str:
        """Return the path of a note in the folder, with `/`."""
        return os.path.relpath(target, self._find_root()).replace(os.sep, "/")

    def _do_all(self, work: Callable[[T], None], items: Iterable[T]) -> None:
        """Run on all items concurrently, since most of the time is waiting for the disk."""
        waiting = list(items)
        if len(waiting) == 1:
            work(waiting[0])
        elif waiting:
            list(self._pool.map(work, waiting))

    def recover(self, save: SaveBytes) -> int:
        """Crash recovery: clean up the temporary files of a dead process, before anything else is changed.

        Returns how many files were tidied up; those that may still be written to are in `take_kept`.
        """
        tidied, found = 0, list[Kept]()
        for folder, ours in self._find_private():
            kept, number = recover_folder(self._calls, folder, ours)
            found += kept
            tidied += number
        if self._place is not None and self._place.is_dir():
            place = PrivateFolder(os.path.realpath(self._place), self._find_root())
            kept, number = recover_folder(self._calls, place.folder, os.listdir(place.folder), place)
            found += kept
            tidied += number
        for each in found:
            if not (self._has_leases and self._is_settled(each, save)):
                self._kept.append(each)
        return tidied

    def _is_settled(self, kept: Kept, save: SaveBytes) -> bool:
        try:
            self.settle(kept, save)
        except FileNotFoundError:
            return True
        except (OSError, FileBusy):
            return False
        return True

    def _locate(self, path: str, root: str | None = None) -> str:
        """Resolve a relative path below the real folder; raises `OutsideKnowledge` (path traversal)."""
        root = root or self._find_root()
        real = resolve_below(root, path)
        if not is_inside(real, root):
            raise OutsideKnowledge(path)
        return real

    def _locate_decided(self, path: str, decided: str | None, root: str) -> str:
        """Resolve a path which links lead where it was decided on; raises `PathRedirected` otherwise."""
        target = self._locate(path, root)
        real = _below(root, target)
        if real != (path if decided is None else decided):
            raise PathRedirected(path, real)
        return target

    def refuse_link(self, path: str) -> None:
        """Raise `LinkedFile` for a file that is a symbolic link itself, and `OutsideKnowledge`."""
        root = self._find_root()
        if os.path.islink(os.path.join(root, path)):
            raise LinkedFile(path, _below(root, self._locate(path, root)))

    def real_paths(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the real path of each path that contains a link. Raises `OutsideKnowledge`."""
        root = self._find_root()
        found = {path: _below(root, self._locate(path, root)) for path in paths}
        return {path: real for path, real in found.items() if real != path}

    def _find_root(self) -> str:
        """Return the real path of the folder: a symlink may point to another one now."""
        try:
            if os.path.samestat(os.stat(self.root), os.stat(self._real_root)):
                return self._real_root
        except OSError:
            pass  # it was deleted or moved
        self._real_root = os.path.realpath(self.root)
        return self._real_root


def _below(root: str, target: str) -> str:
    """Return the path of a file below the root, with `/`."""
    return target[len(root) + 1 :].replace(os.sep, "/")
