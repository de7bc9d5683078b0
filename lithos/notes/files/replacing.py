"""Atomic replacing, creating and removing of note files without losing changes by other programs.

All functions block.

The basic rule: Lithos unlinks a file only after it has read the bytes *after* the file lost its name. The new
and the old file are exchanged in one step. The displaced file is compared with the expected one, and put back
if they differ (compare-and-swap). Otherwise, the displaced file is kept (`Kept`) until no program can write
to it any more (`read_lease.settle`). A read lease shows whether a program has a file open for writing. It
also delays programs that want to open the file for writing.

Lithos does not wait for other programs. If another program is writing a file, `FileBusy` is raised at once.
New bytes are written and synced in the folder of their note, so that they inherit its group and access list.
They are written without a name, or under a temporary name if the file system requires a name. Exchanged files
are stored in a `PrivateFolder`, if one is available, which no other program reads. `sync_folder` makes many
renames durable at once, `make_folders` creates missing folders, and `try_writing` is the trial write of the
health check.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TypeVar

from attrs import evolve

from lithos.kernel.operating_system import CLOSE_ON_EXEC, FOLDER, SYNCS_FOLDERS, room_in
from lithos.notes.files.protection import Protection
from lithos.notes.files.read_lease import Watch, is_same
from lithos.notes.files.system_calls import UNNAMED, UNSUPPORTED, SystemCalls
from lithos.notes.files.values import (
    TEMPORARY_PREFIX,
    TEMPORARY_SUFFIX,
    FileBusy,
    FileChanged,
    FileOccupied,
    FileState,
    Kept,
    Move,
    NotSynced,
    PrivateFolder,
    Put,
    Remove,
    digest_of,
    private_name,
    state_of,
    temporary_name,
)
from lithos.text.words.analysis import name_key


def discard(calls: SystemCalls, path: str) -> None:
    """Unlink a private file if it exists."""
    with suppress(FileNotFoundError):
        calls.unlink(path)


def _keep_mode(calls: SystemCalls, target: str, descriptor: int) -> None:
    try:
        calls.fchmod(descriptor, stat.S_IMODE(calls.lstat(target).st_mode))
    except (FileNotFoundError, PermissionError):
        return  # the comparison detects a vanished file; some systems do not support modes


def _write_all(calls: SystemCalls, descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[calls.write(descriptor, view) :]


#: Maximum number of attempts to put a file back while other programs save it repeatedly. An attempt takes
#: some microseconds.
_TURNS = 64
#: Maximum number of remembered folders that are not on the volume of the notes folder.
_MOST_REMOTE = 1_000


T = TypeVar("T")


class Replacing:
    """Changes single files with those system calls that the file system supports.

    `keep` receives every displaced file.

    Private files are created in `place` if this folder is given. For folders on another volume, they are
    created next to the notes.
    """

    def __init__(
        self,
        calls: SystemCalls,
        protection: Protection,
        keep: Callable[[Kept], None],
        place: PrivateFolder | None = None,
    ) -> None:
        self._calls = calls
        self.protection = protection
        self._keep = keep
        self._place_of_all = place
        self._remote: set[str] = set()
        #: True if a system call failed although the probe found that it works. The file system must then be
        #: probed again.
        self.is_outdated = False

    def carry_out(self, change: Put | Remove, target: str) -> FileState | Exception | None:
        """Write or remove the file. Return its new state or the failure. The folder is not synced yet."""

        if isinstance(change, Remove):
            expected = change.expected
            if expected is None:
                return self._confirm_gone(target)
            return self._attempt(lambda: self._remove(target, expected, saves_old=change.saves_old), target)
        if change.expected is None:
            return self._attempt(lambda: self._create(target, change), target)
        return self._attempt(lambda: self._replace(target, change), target)

    def _confirm_gone(self, target: str) -> Exception:
        """Return `FileNotFoundError` if the file is still missing. Otherwise, return `FileChanged`."""
        try:
            self._calls.lstat(target)
        except OSError as failure:
            return failure
        return FileChanged(target)

    def move(self, target: str, change: Move, other: str) -> FileState | Exception:
        """Rename a file. Return its state or the failure. The folders are not synced yet.

        The inode of the file does not change, so bytes that another program is saving are moved with the
        file.
        """
        return self._attempt(lambda: self._move(target, change, other), target)

    def _attempt(self, work: Callable[[], T], target: str) -> T | Exception:
        """Return the result of a change, or the failure. After a failure, the file is unchanged.

        If the folder is missing, the failure is `FileChanged`, because another program renamed or removed the
        folder.
        """
        try:
            return work()
        except FileChanged as failure:
            if failure.kept is not None:
                self._keep(failure.kept)
            return failure
        except FileNotFoundError:
            place = self._place_of_all
            self.is_outdated |= place is not None and not os.path.isdir(place.folder)
            return FileChanged(target)
        except (OSError, FileBusy, FileOccupied) as failure:
            folder = os.path.dirname(target)
            is_first = self._place_of_all is not None and folder not in self._remote
            if not (isinstance(failure, OSError) and failure.errno == errno.EXDEV and is_first):
                return failure
            if len(self._remote) >= _MOST_REMOTE:
                self._remote.clear()
            self._remote.add(folder)
        return self._attempt(work, target)

    def _swap_name(self, target: str, *known: str) -> str:
        """Return a path for an exchanged file.

        Files set aside are never in the private folder, because their names must become durable when the
        folder of their note is synced.
        """
        place = None if os.path.dirname(target) in self._remote else self._place_of_all
        return private_name(self._calls, target, "swap", *known, place=place)

    def _move(self, target: str, change: Move, other: str) -> FileState:
        with self._watch_expected(target, change.expected) as watch:
            if not self._rename_at_once(target, other):
                aside = private_name(self._calls, target, "aside", "")
                kept = self._move_aside(target, aside, change.expected, "", watch)
                try:
                    self._place(aside, other)
                except OSError as failure:
                    self._return_aside(aside, target, kept)
                    if isinstance(failure, FileExistsError):
                        raise FileOccupied(other) from None
                    raise
            return state_of(self._calls.fstat(watch.descriptor))

    def _rename_at_once(self, target: str, other: str) -> bool:
        """Rename a file without overwriting. Return False if the rename needs two steps."""
        if not self.protection.can_place:
            raise _unprotected(target)
        if not self.protection.no_replace:
            return False
        try:
            self._calls.rename_new(target, other)
        except FileNotFoundError:
            raise FileChanged(target) from None
        except FileExistsError:
            if is_same_spelling(target, other):  # the new name already exists on a case-insensitive disk
                return False
            raise FileOccupied(other) from None
        except OSError as failure:
            if failure.errno not in UNSUPPORTED:
                raise
            self.is_outdated = True
            return False
        return True

    def _create(self, target: str, change: Put) -> FileState:
        try:
            return self._stage(target, change.data, target)
        except FileExistsError:
            raise FileOccupied(target) from None

    def _stage(self, target: str, data: bytes, name: str) -> FileState:
        """Write and sync the new bytes of the note `target`.

        The file then gets the name `name`, which is `target` or a private name.

        Return the state of the new file, which a later rename does not change. After a failure, no file is
        left.
        """
        if self.protection.unnamed:
            try:
                descriptor = self._calls.open(os.path.dirname(target), UNNAMED)
                try:
                    state = self._fill(descriptor, target, data, keep_mode=name != target)
                    self._calls.link_unnamed(descriptor, name)
                    return state
                finally:
                    self._calls.close(descriptor)
            except OSError as failure:
                if failure.errno not in UNSUPPORTED:
                    raise
                self.is_outdated = True
        return self._stage_named(target, data, name)

    def _stage_named(self, target: str, data: bytes, name: str) -> FileState:
        """Write the bytes under a temporary name next to the note.

        The file then inherits the same attributes.

        `_stage` uses this method on file systems that cannot write a file without a name.
        """
        path = temporary_name(self._calls, os.path.dirname(target))
        descriptor = self._calls.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            state = self._fill(descriptor, target, data, keep_mode=name != target)
        except BaseException:
            discard(self._calls, path)
            raise
        finally:
            self._calls.close(descriptor)
        try:
            if name == target:
                self._place(path, name)
            else:
                self._calls.rename(path, name)
        except BaseException:
            self._discard(path, target, digest_of(data))
            raise
        return state

    def _fill(self, descriptor: int, target: str, data: bytes, *, keep_mode: bool) -> FileState:
        """Write and sync a private file. With `keep_mode`, the file gets the permissions of its target.

        Owner, access lists and extended attributes are not copied.
        """
        if keep_mode:
            _keep_mode(self._calls, target, descriptor)
        _write_all(self._calls, descriptor, data)
        self._calls.fsync(descriptor)
        # The state must come from the descriptor. The final name may already belong to another program's
        # edit.
        return state_of(self._calls.fstat(descriptor))

    def _discard(self, path: str, target: str, digest: str) -> None:
        """Unlink a private file.

        If the folder of the file was renamed, `keep` gets the file, and a later search finds it.
        """
        try:
            self._calls.unlink(path)
        except FileNotFoundError:
            self._keep(Kept.of(path, target, {digest}, is_leased=True))

    def _replace(self, target: str, change: Put) -> FileState:
        assert change.expected is not None
        if not (self.protection.exchange or self.protection.can_place):
            raise _unprotected(target)
        needless, ours_digest = "" if change.saves_old else change.expected, digest_of(change.data)
        swap = self._swap_name(target, ours_digest, needless)
        state = self._stage(target, change.data, swap)  # a complete file, even if another program wrote it
        with ExitStack() as opened:
            ours = self._pin(swap, opened)
            try:
                watch = opened.enter_context(self._watch_expected(target, change.expected))
                exchanged = self._exchange(swap, target)
            except (OSError, FileBusy, FileChanged) as failure:
                if is_same(self._calls, ours, swap):  # not exchanged, whatever the call has reported
                    discard(self._calls, swap)
                else:  # the file was exchanged, or is next to the note in a renamed folder
                    self._keep(Kept.of(swap, target, {needless, ours_digest}, is_leased=False))
                if isinstance(failure, FileNotFoundError):
                    raise FileChanged(target) from None
                raise
            if exchanged:
                self._inspect(swap, target, change, ours, watch, opened)
            else:
                self._replace_in_two(swap, target, change, watch)
            self._keep(Kept.of(swap, target, {needless}, watch.is_leased))
        return state

    def _inspect(
        self, swap: str, target: str, change: Put, ours: int, watch: Watch, opened: ExitStack
    ) -> None:
        """Compare the displaced file with the expected file.

        If the files differ, put the displaced file back and raise `FileChanged`.
        """
        assert change.expected is not None
        with suppress(OSError):  # an unreadable file is not the expected file either
            if watch.is_still(swap, change.expected):
                return
        kept = Kept.of(swap, target, {digest_of(change.data)}, watch.is_leased)
        try:  # put back before the lease ends, so that programs waiting in open() get that file
            self._put_back(swap, target, ours, opened)
        except OSError:
            self._keep(kept)
            raise
        raise FileChanged(target, kept)

    def _replace_in_two(self, swap: str, target: str, change: Put, watch: Watch) -> None:
        """Replace the file in two steps, without an exchange call.

        During the replacement, the name is free for a moment. A file created under it is never overwritten.
        """
        assert change.expected is not None
        needless = "" if change.saves_old else change.expected
        aside = private_name(self._calls, target, "aside", needless)
        try:
            if not self.protection.can_place:
                raise _unprotected(target)
            kept = self._move_aside(target, aside, change.expected, needless, watch)
            try:
                self._place(swap, target)
            except FileExistsError:  # another program has just saved a file, so keep both files
                raise FileChanged(target, Kept.of(aside, target, (), watch.is_leased)) from None
            except OSError:
                self._return_aside(aside, target, kept)
                raise
        except (OSError, FileChanged):
            self._discard(swap, target, digest_of(change.data))
            raise
        # After a crash, a file with this name is not put back, because the note may have been deleted by
        # then.
        self._calls.rename(aside, swap)

    def _remove(self, target: str, expected: str, *, saves_old: bool) -> None:
        needless = "" if saves_old else expected
        aside = private_name(self._calls, target, "aside", needless)
        if not self.protection.can_place:
            raise _unprotected(target)
        with self._watch_expected(target, expected) as watch:
            self._move_aside(target, aside, expected, needless, watch)
            swap = self._swap_name(target, needless)
            try:
                self._calls.rename(aside, swap)
            except FileNotFoundError:  # the file is next to the note, in a renamed folder
                swap = aside
            except OSError:  # the place is on another volume
                swap = private_name(self._calls, target, "swap", needless)
                self._calls.rename(aside, swap)
            self._keep(Kept.of(swap, target, {needless}, watch.is_leased))

    def _watch_expected(self, target: str, expected: str) -> Watch:
        try:
            watch = Watch(self._calls, target, leases=self.protection.leases)
        except FileNotFoundError:
            raise FileChanged(target) from None
        try:
            if watch.read().digest == expected:
                return watch
            raise FileChanged(target)
        except BaseException:
            watch.__exit__()
            raise

    def _move_aside(self, target: str, aside: str, expected: str, needless: str, watch: Watch) -> Kept:
        """Rename the file aside. If it is not the expected file, rename it back and raise `FileChanged`."""
        try:
            self._calls.rename(target, aside)
        except FileNotFoundError:
            if not is_same(self._calls, watch.descriptor, aside):  # a network file system may repeat a rename
                raise FileChanged(target) from None
        if watch.is_still(aside, expected):
            return Kept.of(aside, target, {needless}, watch.is_leased)
        try:
            self._place(aside, target)
        except FileExistsError:  # a newer file already has the name
            raise FileChanged(target, Kept.of(aside, target, (), watch.is_leased)) from None
        raise FileChanged(target)

    def _return_aside(self, aside: str, target: str, kept: Kept) -> None:
        try:
            self._place(aside, target)
        except FileExistsError:
            self._keep(kept)
        except FileNotFoundError:  # the folder was just renamed, and no other file is left
            self._keep(evolve(kept, known=frozenset()))

    def _put_back(self, swap: str, target: str, last: int, opened: ExitStack) -> None:
        """Put the newest file that another program saved back to `target`.

        The two files are exchanged until `swap` is the file that was put in last.

        Any other file in `swap` was saved in the meantime, so it is newer and is put back next. At the end,
        `swap` is the file of Lithos or an older file of another program. If `target` was deleted in the
        meantime, `swap` is the newest file of another program.
        """
        for _ in range(_TURNS):
            held = self._pin(swap, opened)
            with suppress(FileNotFoundError):
                self._calls.exchange(swap, target)
                if not is_same(self._calls, last, swap):
                    last = held
                    continue
            return

    def _exchange(self, one: str, other: str) -> bool:
        """Exchange the files of two names atomically.

        Return False if the file system does not support this.
        """
        if not self.protection.exchange:
            return False
        try:
            self._calls.exchange(one, other)
        except OSError as failure:
            if failure.errno not in UNSUPPORTED:
                raise
            self.is_outdated = True
            return False
        return True

    def _place(self, source: str, target: str) -> None:
        """Rename a file by a rename flag or by a link, without overwriting.

        Raise `FileExistsError` if the target exists.
        """
        if self.protection.no_replace:
            try:
                self._calls.rename_new(source, target)
                return
            except OSError as failure:
                if failure.errno not in UNSUPPORTED:
                    raise
                self.is_outdated = True
        if not self.protection.links:
            raise _unprotected(target)
        self._calls.link(source, target)
        self._calls.unlink(source)

    def _pin(self, path: str, opened: ExitStack) -> int:
        descriptor = self._calls.pin(path)
        opened.callback(self._calls.close, descriptor)
        return descriptor


def is_same_spelling(one: str, other: str) -> bool:
    """Return whether two names differ only in case or Unicode form. A disk may treat such names as equal."""
    return name_key(one) == name_key(other)


def _unprotected(target: str) -> OSError:
    return OSError(
        errno.EOPNOTSUPP,
        "this file system can neither rename without overwriting nor link, so a file saved by another "
        "program could be overwritten. Move the notes to another file system (see lithos doctor)",
        target,
    )


def sync_folder(
    calls: SystemCalls, folder: str, numbers: list[int], results: list[FileState | Exception | None]
) -> None:
    """Make the changes with these numbers durable. If that fails, set their results to `NotSynced`."""
    try:
        try:
            _sync(calls, folder)
        except FileNotFoundError:  # the folder was renamed after the change, and its new name is unknown
            calls.sync_all()
    except OSError as failure:
        for number in numbers:
            result = results[number]
            if not isinstance(result, Exception):
                results[number] = NotSynced(failure, result)


def make_folders(calls: SystemCalls, folder: str) -> list[str]:
    """Create missing folders. Return the folders whose entries changed. The caller must sync them."""
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        try:
            calls.mkdir(path)
        except FileExistsError:
            if not os.path.isdir(path):
                raise
    return [os.path.dirname(path) for path in missing]


def _sync(calls: SystemCalls, folder: str) -> None:
    if not SYNCS_FOLDERS:
        return
    descriptor = calls.open(folder, os.O_RDONLY | FOLDER)
    try:
        calls.fsync(descriptor)
    finally:
        calls.close(descriptor)


#: Number of bytes in the trial file. This is more than file systems store together with the name, so the
#: file needs a block.
_SIZE = 4_096


def try_writing(folder: Path) -> None:
    """Write a temporary file durably and remove it. Blocks. Raise `OSError` on failure."""
    target = os.path.join(folder, f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}{TEMPORARY_SUFFIX}")
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CLOSE_ON_EXEC, 0o600)
    try:
        try:
            left = _SIZE
            while left:  # a nearly full disk writes only some of the bytes
                left -= os.write(descriptor, bytes(left))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    finally:
        os.unlink(target)
    folder_descriptor = os.open(folder, os.O_RDONLY | FOLDER | CLOSE_ON_EXEC)
    try:
        os.fsync(folder_descriptor)
    finally:
        os.close(folder_descriptor)


def check_writable(folder: Path) -> None:
    """Raise `OSError` if the state of a folder shows that it is not writable.

    Blocks. Does not create a file.
    """
    room = room_in(folder)
    reason = None
    if room.is_read_only:
        reason = errno.EROFS
    elif not os.access(folder, os.W_OK | os.X_OK):
        reason = errno.EACCES
    elif not room.bytes:
        reason = errno.ENOSPC
    if reason is not None:
        raise OSError(reason, os.strerror(reason), str(folder))
