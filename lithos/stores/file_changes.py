"""Changing one file durably: temporary file, fsync, rename; the folder is synced once for many. It blocks."""

from __future__ import annotations

import errno
import os
import stat

from attrs import frozen

from lithos.stores.file_values import (
    FileChanged,
    FileOccupied,
    FileState,
    NotSynced,
    Put,
    Remove,
    state_of,
)

#: Dot-named, so nothing ever takes a temporary file for a note.
TEMPORARY_PREFIX = ".lithos-"
TEMPORARY_SUFFIX = ".tmp"
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


@frozen
class _Staged:
    target: str
    temporary: str
    state: FileState


def carry_out(change: Put | Remove, target: str) -> FileState | Exception | None:
    """Put or remove the file; what it is then, or why not. Only the folder is not synced yet."""
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


def sync_folder(folder: str, numbers: list[int], results: list[FileState | Exception | None]) -> None:
    """Make the changes with these numbers durable; where that fails, their results become `NotSynced`."""
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


def make_folders(folder: str) -> list[str]:
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
