"""An open note file under a read lease, where supported: whether any program writes to it. It blocks.

A lease is granted only while no program has the file open for writing; one that wants to open it so while the
lease holds waits until the descriptor is closed. So displaced files are unlinked once no program can be
writing to them (`settle`), and recovered after a crash.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection
from contextlib import suppress

from lithos.notes.files.system_calls import UNSUPPORTED, SystemCalls
from lithos.notes.files.values import (
    TEMPORARY_PREFIX,
    FileBusy,
    Kept,
    PrivateFolder,
    ReadFile,
    digest_of,
    is_temporary,
    parse_name,
    state_of,
)

#: Seconds for a program that opened a file as it was being unlinked, to write and close it.
_LAST_PATIENCE = 2.0


#: Makes the bytes of a kept file durable elsewhere; raises `OSError`.
SaveBytes = Callable[[Kept, bytes], None]


def settle(calls: SystemCalls, kept: Kept, save: SaveBytes, *, leases: bool) -> None:
    """Unlink a kept file; unknown bytes, which another program wrote, are saved before.

    Raises `FileBusy` while a program writes to it: retry later. `FileNotFoundError` when it is gone.
    """
    with Watch(calls, kept.path, leases=leases) as watch:
        source = watch.read()
        if source.digest not in kept.known:
            if not watch.is_quiet():
                raise FileBusy(kept.path)
            save(kept, source.data)
        if not watch.is_still(kept.path, source.digest):
            raise FileBusy(kept.path)
        calls.unlink(kept.path)
        if watch.is_untouched():
            return
        watch.let_write(_LAST_PATIENCE)  # opened in this very moment, by a lookup begun a second ago
        last = watch.read()
        if last.digest != source.digest and last.digest not in kept.known:
            save(kept, last.data)


def recover_folder(
    calls: SystemCalls, folder: str, names: Collection[str], place: PrivateFolder | None = None
) -> tuple[list[Kept], int]:
    """Recover one folder after a crash: return the files to settle, and how many others were tidied up.

    The notes of these files are next to them, or are given by the `place`, if this is that folder.

    Temporary files are removed, files aside get their names back. Run this before any change.
    """
    kept: list[Kept] = []
    tidied = 0
    for name in sorted(names):
        path = os.path.join(folder, name)
        with suppress(OSError):  # one that cannot be removed stays: it is never taken for a note
            if is_temporary(name):
                calls.unlink(path)
                tidied += 1
                continue
        found = parse_name(name) if name.startswith(TEMPORARY_PREFIX) else None
        if found is None:
            continue
        note = os.path.join(folder, found.note or "unknown.md")
        if place is not None and found.note is not None:
            note = place.note_of(found.note)
        if found.kind == "aside" and found.note is not None and _go_back(calls, path, note):
            tidied += 1
            continue
        # A file that was set aside for a note which now has another file may contain the only copy of its
        # text.
        known = found.known if found.kind == "swap" else ()
        kept.append(Kept(path, note, known, is_leased=False))
    return kept, tidied


def _go_back(calls: SystemCalls, path: str, target: str) -> bool:
    """Rename an aside file back to its note without overwriting; return whether that succeeded."""
    try:
        calls.rename_new(path, target)
    except FileExistsError:
        return False
    except OSError as failure:
        if failure.errno not in UNSUPPORTED:
            return False
        with suppress(OSError):
            calls.link(path, target)
            calls.unlink(path)
            return True
        return False
    return True


#: Quiet period: seconds since its last change after which a file is not taken for half saved; longer for an
#: empty one, since many programs truncate a file first and write it then.
QUIET, EMPTY_QUIET = 0.1, 1.0
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW


class Watch:
    """A regular file, open for reading. While it is open, its inode number is not given to another file.

    Raises `FileBusy` when it is open for writing, and `OSError`. If `leases` is False, no lease is requested,
    and only the times of the file show changes.
    """

    def __init__(self, calls: SystemCalls, path: str, *, leases: bool) -> None:
        self._calls = calls
        self._path = path
        try:  # O_NONBLOCK: wait neither for the lease of another program nor for a pipe
            self.descriptor = calls.open(path, _READ)
        except BlockingIOError:
            raise FileBusy(path) from None
        try:
            self._status = calls.fstat(self.descriptor)
            check_regular(self._status, path)
            self.is_leased = leases and self._take_lease()
        except BaseException:
            calls.close(self.descriptor)
            raise

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *failure: object) -> None:
        # This releases the lease, so that programs blocked in open() can continue.
        self._calls.close(self.descriptor)

    def _take_lease(self) -> bool:
        try:
            self._calls.lease(self.descriptor)
        except BlockingIOError:  # it is open, or mapped, for writing
            raise FileBusy(self._path) from None
        except OSError:  # another user's file, or a file system without leases
            return False
        return True

    def read(self) -> ReadFile:
        """Return the bytes, with the state from before they were read."""
        self._status = self._calls.fstat(self.descriptor)
        return ReadFile(self._calls.read(self.descriptor), state_of(self._status))

    def is_untouched(self) -> bool:
        """Return whether the lease is unbroken: no program wants to write. Without one unknown: True."""
        return not self.is_leased or self._calls.is_leased(self.descriptor)

    def is_quiet(self) -> bool:
        """Return whether the last change is long enough ago that the file is not half saved."""
        status = self._status
        # Without a lease a program that sets the time of its file back is not taken at its word.
        changed = status.st_mtime if self.is_leased else max(status.st_mtime, status.st_ctime)
        return abs(self._calls.now() - changed) >= (QUIET if status.st_size else EMPTY_QUIET)

    def is_still(self, path: str, digest: str) -> bool:
        """Return whether `path` is still this file, and its bytes still have this digest."""
        if not is_same(self._calls, self.descriptor, path):
            return False
        if self.is_leased:
            return self.is_untouched()  # no program could write
        return digest_of(self._calls.read(self.descriptor)) == digest

    def let_write(self, patience: float) -> None:
        """Release the lease for programs that wait in open(), and wait until they close the file, or time
        out.
        """
        self._calls.end_lease(self.descriptor)
        for _ in range(round(patience / 0.01)):
            self._calls.sleep(0.01)
            with suppress(FileBusy):
                self._take_lease()
                return


def check_regular(status: os.stat_result, path: str) -> None:
    """Raise `OSError` unless this is a regular file."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "There is no file, but something else", path)


def is_same(calls: SystemCalls, descriptor: int, path: str) -> bool:
    """Return whether the name is that of the open file."""
    with suppress(FileNotFoundError):
        return os.path.samestat(calls.fstat(descriptor), calls.lstat(path))
    return False
