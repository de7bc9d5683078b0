"""Atomic replacing, creating and removing of note files, without losing changes of other programs. All of it
blocks.

One rule: no file is unlinked before its bytes were read *after* it lost its name. The new file and the old
one are exchanged in one step. The displaced file is compared and put back if it is not the expected one
(compare-and-swap). Otherwise it is kept (`Kept`) until no program can write to it any more (`kept.settle`). A
read lease shows whether a program has a file open for writing, and for that moment delays programs that want
to open it for writing.

Lithos does not wait for other programs: a file that another program is writing raises `FileBusy` at once. New
bytes are written and synced in the folder of their note, so that they inherit its group and access list:
without a name until they are whole, or, where a file must have one, under a temporary name. Exchanged files
are in a `PrivateFolder`, which no other program reads, where there is one. `sync_folder` makes many changes
of names durable at once, `make_folders` creates missing folders, `try_writing` is the health check's trial
write.
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
    """Unlink a file of ours if it exists."""
    with suppress(FileNotFoundError):
        calls.unlink(path)


def _keep_mode(calls: SystemCalls, target: str, descriptor: int) -> None:
    try:
        calls.fchmod(descriptor, stat.S_IMODE(calls.lstat(target).st_mode))
    except (FileNotFoundError, PermissionError):
        return  # it vanished, which the comparison finds, or there are no modes


def _write_all(calls: SystemCalls, descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[calls.write(descriptor, view) :]


#: Retries of putting back a file that others keep saving: each takes a few microseconds.
_TURNS = 64
#: Folders remembered that are on another volume than the rest of the notes.
_MOST_REMOTE = 1_000


T = TypeVar("T")


class Replacing:
    """Changes single files with the system calls the file system offers. `keep` gets every displaced file.

    Private files are made in the `place`, if there is one, but for folders that are on another volume.
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
        #: A system call that the probe found was refused: probe the file system again.
        self.is_outdated = False

    def carry_out(self, change: Put | Remove, target: str) -> FileState | Exception | None:
        """Put or remove the file; returns its new state, or the failure. Its folder is not synced yet."""

        if isinstance(change, Remove):
            expected = change.expected
            if expected is None:
                return self._confirm_gone(target)
            return self._attempt(lambda: self._remove(target, expected, saves_old=change.saves_old), target)
        if change.expected is None:
            return self._attempt(lambda: self._create(target, change), target)
        return self._attempt(lambda: self._replace(target, change), target)

    def _confirm_gone(self, target: str) -> Exception:
        """`FileNotFoundError`, as decided, or `FileChanged`."""
        try:
            self._calls.lstat(target)
        except OSError as failure:
            return failure
        return FileChanged(target)

    def move(self, target: str, change: Move, other: str) -> FileState | Exception:
        """Rename a file; return its state, or the failure. The folders are not synced yet.

        The file keeps its inode, so bytes that a program saves into it meanwhile are moved with it.
        """
        return self._attempt(lambda: self._move(target, change, other), target)

    def _attempt(self, work: Callable[[], T], target: str) -> T | Exception:
        """Return the result of a change or its failure, which leaves the file unchanged.

        If the folder no longer exists, another program renamed or removed it: `FileChanged`.
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
        """Return the name for a swapped file.

        No file in the place is set aside: all its names must be durable with the folder of its note.
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
        """Rename without overwriting; False where that takes two steps."""
        if not self.protection.can_place:
            raise _unprotected(target)
        if not self.protection.no_replace:
            return False
        try:
            self._calls.rename_new(target, other)
        except FileNotFoundError:
            raise FileChanged(target) from None
        except FileExistsError:
            if is_same_spelling(target, other):  # a disk that ignores case has the new name already
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
        """Write and sync new bytes for the note `target`, then give them a name: its own, or a private one.

        Returns the state of the file, which stays the same when it is renamed. A failure leaves no file.
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
        """Fallback: stage the bytes next to the note under a temporary name, so that they inherit the same
        attributes.
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
        """Write and sync a file of ours; with `keep_mode` it has the permissions of its target.

        Owner, access lists and extended attributes are not copied.
        """
        if keep_mode:
            _keep_mode(self._calls, target, descriptor)
        _write_all(self._calls, descriptor, data)
        self._calls.fsync(descriptor)
        # Of our own file: once it has its final name, it may be another program's edit already.
        return state_of(self._calls.fstat(descriptor))

    def _discard(self, path: str, target: str, digest: str) -> None:
        """Unlink a file of ours; one whose folder was renamed is looked for later."""
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
        state = self._stage(target, change.data, swap)  # always whole: ours, or another program's
        with ExitStack() as opened:
            ours = self._pin(swap, opened)
            try:
                watch = opened.enter_context(self._watch_expected(target, change.expected))
                exchanged = self._exchange(swap, target)
            except (OSError, FileBusy, FileChanged) as failure:
                if is_same(self._calls, ours, swap):  # not exchanged, whatever a remote file system says
                    discard(self._calls, swap)
                else:  # or it is next to the note in a renamed folder
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
        """Compare the displaced file; if it is not the expected one, put it back and raise `FileChanged`."""
        assert change.expected is not None
        with suppress(OSError):  # an unreadable file is not the expected one either
            if watch.is_still(swap, change.expected):
                return
        kept = Kept.of(swap, target, {digest_of(change.data)}, watch.is_leased)
        try:  # before the lease ends, so that who waits in open() gets the file that is put back
            self._put_back(swap, target, ours, opened)
        except OSError:
            self._keep(kept)
            raise
        raise FileChanged(target, kept)

    def _replace_in_two(self, swap: str, target: str, change: Put, watch: Watch) -> None:
        """Fallback without an exchange call: the name is free for a moment; it is never overwritten."""
        assert change.expected is not None
        needless = "" if change.saves_old else change.expected
        aside = private_name(self._calls, target, "aside", needless)
        try:
            if not self.protection.can_place:
                raise _unprotected(target)
            kept = self._move_aside(target, aside, change.expected, needless, watch)
            try:
                self._place(swap, target)
            except FileExistsError:  # saved in that moment, perhaps without the old bytes: they are all kept
                raise FileChanged(target, Kept.of(aside, target, (), watch.is_leased)) from None
            except OSError:
                self._return_aside(aside, target, kept)
                raise
        except (OSError, FileChanged):
            self._discard(swap, target, digest_of(change.data))
            raise
        # Under this name it does not go back after a crash: the note may be deleted by then.
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
            except FileNotFoundError:  # it is next to the note, in a renamed folder
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
        """Rename the file aside; one that is not the expected one is put back, and raises `FileChanged`."""
        try:
            self._calls.rename(target, aside)
        except FileNotFoundError:
            if not is_same(self._calls, watch.descriptor, aside):  # a remote one may say so of a second try
                raise FileChanged(target) from None
        if watch.is_still(aside, expected):
            return Kept.of(aside, target, {needless}, watch.is_leased)
        try:
            self._place(aside, target)
        except FileExistsError:  # a newer file has the name now
            raise FileChanged(target, Kept.of(aside, target, (), watch.is_leased)) from None
        raise FileChanged(target)

    def _return_aside(self, aside: str, target: str, kept: Kept) -> None:
        try:
            self._place(aside, target)
        except FileExistsError:
            self._keep(kept)
        except FileNotFoundError:  # its folder was renamed in this moment: all that is left of it
            self._keep(evolve(kept, known=frozenset()))

    def _put_back(self, swap: str, target: str, last: int, opened: ExitStack) -> None:
        """Give `target` its newest foreign file: exchange until the file that comes out is the one put in
        last.

        Any other file that comes out was saved meanwhile, is newer, and is put in again. The file left in
        `swap` is our file, an older foreign one, or, if the target was deleted meanwhile, the newest foreign
        one.
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
        """Exchange two names atomically; False where the file system cannot."""
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
        """Rename without overwriting, by rename flag or by link; raises `FileExistsError`."""
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
    """Return True for two spellings of one name, in case or Unicode form, that a disk takes for the same."""
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
    """Make the changes with these numbers durable; where that fails, their results become `NotSynced`."""
    try:
        try:
            _sync(calls, folder)
        except FileNotFoundError:  # renamed after the change: its name now is unknown
            calls.sync_all()
    except OSError as failure:
        for number in numbers:
            result = results[number]
            if not isinstance(result, Exception):
                results[number] = NotSynced(failure, result)


def make_folders(calls: SystemCalls, folder: str) -> list[str]:
    """Create missing folders; returns the folders whose entries changed and need a sync."""
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
    descriptor = calls.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        calls.fsync(descriptor)
    finally:
        calls.close(descriptor)


#: More than any file system stores next to the name, so that it takes a block.
_SIZE = 4_096


def try_writing(folder: Path) -> None:
    """Write a temporary file durably and remove it again. Blocks; raises `OSError` where that fails."""
    target = os.path.join(folder, f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}{TEMPORARY_SUFFIX}")
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            left = _SIZE
            while left:  # a nearly full disk accepts only a part
                left -= os.write(descriptor, bytes(left))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    finally:
        os.unlink(target)
    folder_descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder_descriptor)
    finally:
        os.close(folder_descriptor)


def check_writable(folder: Path) -> None:
    """Raise `OSError` when a folder says that nothing can be written to it; makes nothing. Blocks."""
    status = os.statvfs(folder)
    reason = None
    if status.f_flag & os.ST_RDONLY:
        reason = errno.EROFS
    elif not os.access(folder, os.W_OK | os.X_OK):
        reason = errno.EACCES
    elif not status.f_bavail:
        reason = errno.ENOSPC
    if reason is not None:
        raise OSError(reason, os.strerror(reason), str(folder))
