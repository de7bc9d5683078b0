"""Note files on disk: listing, reading, and atomic, durable writing.

To write a note, Lithos creates a file without a name, syncs the file, links or exchanges it atomically
(`replacing`), and syncs the folder. Several writes share the folder syncs and wait for the disk concurrently
(group commit). Readers see either the complete old file or the complete new file. Temporary files have
dot-names, so other programs do not treat them as notes.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from attrs import evolve

from lithos.kernel.operating_system import NO_WAIT
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
from lithos.notes.linked.linked_folders import LinkedFolders
from lithos.notes.linked.roots import Root, Roots
from lithos.notes.model.ignored import Ignored

#: Name of the folder in `.lithos` for exchanged files.
EXCHANGED: Final = "exchanged"
#: Maximum number of concurrent file writes. With four, the file system can already commit them together.
_AT_ONCE = 4

T = TypeVar("T")


class NoteFiles:
    """The folder of the notes: `knowledge/`, or a vault. All methods block; call them in a thread."""

    def __init__(
        self,
        root: Path,
        calls: SystemCalls | None = None,
        *,
        ignored: Ignored | None = None,
        is_foreign: bool = False,
        place: Path | None = None,
        reread: Callable[[], Ignored | None] | None = None,
        linked: LinkedFolders | None = None,
    ) -> None:
        """Open a folder of notes. Files that match `ignored` are not notes.

        If `is_foreign` is set, Lithos creates only notes in the folder. `place` is the folder for exchanged
        files. It is created if missing, and is not used if it is on another volume. `reread` returns the
        ignored patterns if they have changed, else None. `linked` are folders elsewhere whose files are
        notes, too.
        """
        self.root = root
        self.ignored = ignored or Ignored()
        self._reread = reread
        self.is_foreign = is_foreign
        self._calls = calls or KernelCalls()
        self._place = place
        self.linked = LinkedFolders() if linked is None else linked
        self._roots = Roots(str(root), self.linked)
        #: Queue of files that `apply` displaced. The threads of `apply` append to the queue, and `take_kept`
        #: empties it.
        self._kept: deque[Kept] = deque()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="note-files")
        self.root_was_missing = False

    def create_root(self) -> None:
        """Create the folder if it is missing, and record that Lithos created it.

        A foreign folder is not created.
        """
        self.root_was_missing = not self.root.is_dir()
        if not self.is_foreign:
            self.root.mkdir(parents=True, exist_ok=True)
        self._roots.main.refresh()

    def close(self) -> None:
        """Stop the threads that `apply` started. Afterwards, no changes can be applied."""
        self._pool.shutdown()

    def refresh_ignored(self) -> bool:
        """Apply the current linked folders and patterns of ignored files. Return whether either has changed.

        Blocks.
        """
        has_new_links = self.linked.refresh()
        found = self._reread() if self._reread is not None else None
        if found is None or found == self.ignored:
            return has_new_links
        self.ignored = found
        return True

    def is_linked(self, path: str) -> bool:
        """Return whether a note is in a linked folder."""
        return self.linked.find(path) is not None

    def excludes(self, path: str) -> bool:
        """Return whether a file is ignored, or was in a folder that is no longer linked.

        A person excluded such a file, so a note that vanishes with it is not lost.
        """
        return self.ignored.covers(path) or self.linked.has_left(path)

    def list_notes(self) -> list[FoundFile]:
        """Return every `.md` file, sorted by path.

        Dot-files, `ignored` files, and symlinked files outside the folder are left out. A folder that
        symlinks lead to is visited once, so loops end. If its real path is in the notes folder, that path is
        used.
        """
        found = [FoundFile(path, state_of(status)) for path, status in self.walk()]
        found.sort(key=lambda file: file.path)
        return found

    def walk(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the files of `list_notes` with their `stat` results, in no particular order."""
        notes = walk_notes(self._find_root(), self.ignored)
        if not self.linked:
            yield from notes
            return
        # A file of the vault below a prefix would have the path of a file in the linked folder.
        yield from (each for each in notes if self.linked.find(each[0]) is None)
        for root in self._roots.present():
            yield from walk_notes(root.find(), self.ignored, root.prefix)

    def read(self, path: str) -> ReadFile:
        """Read the current bytes of one note.

        Raise `OutsideKnowledge` or `OSError`, which includes `FileInCloud`.
        """
        # Without O_NONBLOCK, opening a named pipe could wait for a writer forever.
        target = self._locate(path)
        try:
            descriptor = self._calls.open(target, os.O_RDONLY | NO_WAIT)
        except FileNotFoundError as failure:
            raise find_in_cloud(target, path) or failure from None
        try:
            status = self._calls.fstat(descriptor)
            check_regular(status, path)
            return ReadFile(self._calls.read(descriptor), state_of(status))
        finally:
            self._calls.close(descriptor)

    def fingerprint(self, path: str) -> Fingerprint | None:
        """Return the fingerprint of a file, or None if the path is not a regular file.

        Makes one system call. Thread-safe.
        """
        try:
            status = self._calls.lstat(self.place(path))
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        return Fingerprint(
            status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        )

    def read_stable(self, path: str) -> tuple[ReadFile, Fingerprint | None]:
        """Read one note like `read`.

        The fingerprint of the file is also returned. A later check can thus recognise an unchanged file.

        The fingerprint is None if it is unreliable: the file was changed a moment ago, or a symlink leads to
        it.
        """
        before = self.fingerprint(path)
        source = self.read(path)
        is_old = before is not None and before.is_old(self._calls.now())
        return source, before if is_old and self.fingerprint(path) == before else None

    def read_quiet(self, path: str, known: str | None = None) -> ReadFile:
        """Read a note, unless another program is in the middle of a save.

        Bytes with the digest `known` are accepted at once, because the complete file was stored or indexed
        with this digest before. Raise `FileBusy`, `OSError` or `OutsideKnowledge`.
        """
        target = self._locate(path)
        try:
            opened = Watch(self._calls, target, leases=self._has_leases(self._roots.of(path)[0]))
        except FileNotFoundError as failure:
            raise find_in_cloud(target, path) or failure from None
        with opened as watch:
            source = watch.read()
            if (source.digest == known and source.data) or (watch.is_quiet() and watch.is_untouched()):
                return source
        raise FileBusy(path)

    @property
    def protection(self) -> Protection:
        """Return the file system's capabilities. The first call probes them. Raise `OSError` on failure."""
        return self._ready_replacing(self._roots.main).protection

    def _has_leases(self, root: Root) -> bool:
        # Only a change may probe again. Otherwise, a read could create probe files at the same time as a
        # change.
        if root.replacing is not None:
            return root.replacing.protection.leases
        try:
            return self._ready_replacing(root).protection.leases
        except OSError:  # the folder is not writable
            return False

    def _ready_replacing(self, root: Root) -> Replacing:
        if root.replacing is None or root.replacing.is_outdated:
            folder = root.find()
            place = self._make_place(self._find_root())
            protection = probe_protection(self._calls, folder, place.folder if place else None)
            usable = place if protection.reaches_place else None
            root.replacing = Replacing(self._calls, protection, self._kept.append, usable)
        return root.replacing

    def _make_place(self, root: str) -> PrivateFolder | None:
        """Return the folder for exchanged files.

        Create the folder if necessary. Return None if that fails.
        """
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
        """Apply a batch of changes, and make them durable together (group commit).

        The list contains one result per change: the new state of the written or moved file, `None` for a
        removed file, or the exception that stopped the change (`OSError`, `FileChanged`, `FileBusy`,
        `FileOccupied`, `OutsideKnowledge`, `PathRedirected`, `LinkedFile`). A failed change leaves the old
        file unchanged and does not leave a temporary file. `NotSynced` is different: it means that the change
        was applied. Fetch the displaced files with `take_kept`.
        """
        results: list[FileState | Exception | None] = [None] * len(changes)
        targets, written, folders = self._find_targets(changes, results)

        def change_file(target: str) -> None:
            for number in targets[target]:  # keep the order, so that the first creation of a file succeeds
                change = changes[number]
                if results[number] is not None:
                    continue
                try:
                    replacing = self._ready_replacing(self._roots.of(change.path)[0])
                except OSError as failure:
                    results[number] = failure
                    continue
                if isinstance(change, Move):
                    moved = replacing.move(target, change, written[number])
                    results[number] = self._explain_move(change, moved)
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
        """Group the changes by real file, and by the parent of each created folder.

        Changes are identified by their numbers.

        The second result maps each change to the real path of its resulting file.
        """
        folders: dict[str, list[int]] = {}
        targets: dict[str, list[int]] = {}
        written: dict[int, str] = {}
        for number, change in enumerate(changes):
            try:
                target, left = self._find_target(change)
                targets.setdefault(target, []).append(number)
                written[number] = left
                # An update must not create its folder. If the folder is missing, another program has renamed
                # it.
                if isinstance(change, Move) or (isinstance(change, Put) and change.expected is None):
                    self._refuse_placeholder(change.new if isinstance(change, Move) else change.path, left)
                    for made in make_folders(self._calls, os.path.dirname(left)):
                        folders.setdefault(made, []).append(number)
            except (OSError, OutsideKnowledge, PathRedirected, LinkedFile) as failure:
                results[number] = failure
        return targets, written, folders

    def _find_target(self, change: Put | Remove | Move) -> tuple[str, str]:
        """Return the real path of a file before and after a change. The two paths differ only for a move.

        Raise the exceptions that `apply` returns.
        """
        target = self._locate_decided(change.path, change.real)
        if not isinstance(change, Put):
            self.refuse_link(change.path)
        if isinstance(change, Move):
            return target, self._locate_decided(change.new, change.real_new)
        return target, target

    def _explain_move(self, change: Move, moved: FileState | Exception) -> FileState | Exception:
        """Return the result of a move. If it failed between two file systems, return what to do instead."""
        is_between = self._roots.of(change.path)[0] is not self._roots.of(change.new)[0]
        if is_between and isinstance(moved, OSError) and moved.errno == errno.EXDEV:
            return OSError(
                errno.EXDEV,
                f"{change.new} is in a folder on another file system, so the file cannot be renamed. Create "
                "the note there, then delete this one",
            )
        return moved

    def _refuse_placeholder(self, path: str, target: str) -> None:
        """Raise `FileInCloud` if a new file would replace a file that is only in the cloud."""
        away = find_in_cloud(target, path)
        if away is not None and not os.path.lexists(target):
            raise away

    def try_writing(self) -> None:
        """Raise `OSError` if notes cannot be written at present.

        A foreign folder is only checked. Lithos does not write a trial file there.
        """
        if self.is_foreign:
            check_writable(self.root)
        else:
            try_writing(self.root)

    def is_file(self, path: str) -> bool:
        """Return whether a file within the folder has this path. The file need not be a note."""
        root, inner = self._roots.of(path)
        real = root.find()
        target = os.path.normpath(os.path.join(real, inner))
        return is_inside(target, real) and os.path.isfile(target)

    def place(self, path: str) -> str:
        """Return the absolute path of a note path. Links in it are not resolved or checked."""
        root, inner = self._roots.of(path)
        return os.path.join(root.path, inner)

    def real_place(self, path: str) -> tuple[str, str]:
        """Return the real path of the folder that contains a note path, and the note's place in it."""
        root, inner = self._roots.of(path)
        real = root.find()
        return real, os.path.join(real, inner)

    def linked_notes(self) -> list[str]:
        """Return the paths of the notes in linked folders that exist, sorted."""
        found = (walk_notes(root.find(), self.ignored, root.prefix) for root in self._roots.present())
        return sorted(path for walked in found for path, _ in walked)

    def watched_folders(self) -> dict[str, str]:
        """Return the folders to watch for changes, and the beginning of the note paths in each of them."""
        return {os.path.abspath(root.path): root.prefix for root in self._roots}

    def take_kept(self) -> list[Kept]:
        """Return and clear the files displaced since the last call.

        The caller must call `settle` for each file when its grace period has ended.
        """
        kept: list[Kept] = []
        while self._kept:
            kept.append(self._kept.popleft())
        return kept

    def settle(self, kept: Kept, save: SaveBytes) -> None:
        """Unlink a displaced file. If another program wrote its bytes, save the bytes first.

        Raise `FileBusy` while another program writes to the file. Retry later.

        Raise `FileNotFoundError` if the file was deleted or its folder was renamed (see `find_renamed`).
        """
        leases = self._has_leases(self._roots.containing(kept.note))
        settle(self._calls, kept, save, leases=leases)

    def find_renamed(self, lost: Sequence[Kept]) -> list[Kept]:
        """Return the displaced files that still exist next to their notes, with their current paths."""
        wanted = {os.path.basename(each.path): each for each in lost if each.is_beside}
        found: list[Kept] = []
        for folder, names in self._find_private() if wanted else ():
            for name in wanted.keys() & set(names):
                note = os.path.join(folder, os.path.basename(wanted[name].note))
                found.append(evolve(wanted[name], path=os.path.join(folder, name), note=note))
        return found

    def _find_private(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each folder that contains private files of Lithos, with the names of these files."""
        for root in self._roots:
            for folder, folders, names in os.walk(root.find()):
                folders[:] = [name for name in folders if not name.startswith(".")]
                ours = [name for name in names if name.startswith(TEMPORARY_PREFIX)]
                if ours:
                    yield folder, ours

    def relative(self, target: str) -> str:
        """Return the path of a note relative to the folder, with `/` as separator."""
        target = os.path.normpath(target)
        root = self._roots.containing(target)
        return root.prefix + os.path.relpath(target, root.find()).replace(os.sep, "/")

    def _do_all(self, work: Callable[[T], None], items: Iterable[T]) -> None:
        """Run `work` on all items concurrently, because most of the time is spent on waiting for the disk."""
        waiting = list(items)
        if len(waiting) == 1:
            work(waiting[0])
        elif waiting:
            list(self._pool.map(work, waiting))

    def recover(self, save: SaveBytes) -> int:
        """Remove or restore the private files of a dead process (crash recovery).

        Call this before any change.

        Return the number of these files. `take_kept` then returns the files that another program may still be
        writing.
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
            has_leases = self._has_leases(self._roots.containing(each.note))
            if not (has_leases and self._is_settled(each, save)):
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

    def _locate(self, path: str) -> str:
        """Return the absolute path for a relative path in the folder.

        Raise `OutsideKnowledge` for a path outside the folder, and `FileNotFoundError` if the linked folder
        of the path is missing, because Lithos must not create such a folder.
        """
        root, inner = self._roots.of(path)
        folder = root.find()
        if root is not self._roots.main and not os.path.isdir(folder):
            raise FileNotFoundError(errno.ENOENT, f"The linked folder {root.path} is missing", path)
        real = resolve_below(folder, inner)
        if not is_inside(real, folder):
            raise OutsideKnowledge(path)
        return real

    def _locate_decided(self, path: str, decided: str | None) -> str:
        """Return the absolute path for a relative path whose links were already resolved once.

        Raise `PathRedirected` if the links in the path now lead to another file than at the time of the
        decision.
        """
        target = self._locate(path)
        real = self._below(path, target)
        if real != (path if decided is None else decided):
            raise PathRedirected(path, real)
        return target

    def refuse_link(self, path: str) -> None:
        """Raise `LinkedFile` if the file itself is a symbolic link.

        Raise `OutsideKnowledge` for a path outside the folder.
        """
        root, inner = self._roots.of(path)
        if os.path.islink(os.path.join(root.find(), inner)):
            raise LinkedFile(path, self._below(path, self._locate(path)))

    def real_paths(self, paths: Iterable[str]) -> dict[str, str]:
        """Return the real paths of the paths that contain a link.

        Raise `OutsideKnowledge` for a path outside the folder.
        """
        found = {path: self._below(path, self._locate(path)) for path in paths}
        return {path: real for path, real in found.items() if real != path}

    def _below(self, path: str, target: str) -> str:
        """Return the note path of the file to which a note path leads."""
        return self._roots.of(path)[0].below(target)

    def _find_root(self) -> str:
        """Return the current real path of the notes folder."""
        return self._roots.main.find()
