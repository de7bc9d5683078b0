"""Probe of the file system's capabilities against lost updates. The capabilities are tested, not guessed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from attrs import evolve, frozen

from lithos.notes.files.system_calls import UNNAMED, UNSUPPORTED, SystemCalls
from lithos.notes.files.values import temporary_name

#: File systems on which a lease does not detect remote writers (`fuse`), or is always refused (`nfs`).
_LEASES_LIE: Final = ("nfs", "fuse", "cifs", "smb", "9p", "virtiofs", "ceph", "afs", "lustre")
#: File systems known to sync a file without a name, so that afterwards only the folder must be synced. A test
#: cannot show this: btrfs accepts such a sync but does nothing, because the file does not have a name yet.
SYNCS_UNNAMED: Final = frozenset({"ext2", "ext3", "ext4", "xfs", "tmpfs"})
_MOUNTS: Final = "/proc/self/mountinfo"


@frozen
class Protection:
    """Capabilities of the notes folder: exchange of two files, rename without overwriting, links, leases."""

    exchange: bool
    no_replace: bool
    links: bool
    leases: bool
    #: Whether a file can be written and synced before it has a name.
    unnamed: bool
    #: Whether files can be exchanged with the folder for private files, and renamed into it.
    reaches_place: bool = False

    @property
    def can_place(self) -> bool:
        """Return whether a file can get a name without overwriting another file.

        If this is false, notes are not written.
        """
        return self.no_replace or self.links


def probe_protection(calls: SystemCalls, folder: str, place: str | None = None) -> Protection:
    """Probe with two temporary files.

    If there is a folder for private files (`place`), at least one of them is created in it.

    The place may be on another volume, and only a test shows that: a bind mount has the same device number, a
    subvolume another one. So the test uses a file of the notes folder. If possible, this file is created
    without a name and gets its name in the place. Otherwise it is exchanged with a file of the place. Raises
    `OSError` if the notes folder cannot be written.
    """
    if place is not None:
        with suppress(OSError):  # errors of the notes folder are reported later, without the place
            return evolve(_probe(calls, folder, place), reaches_place=True)
    return _probe(calls, folder, folder)


def _probe(calls: SystemCalls, folder: str, place: str) -> Protection:
    with _file(calls, place) as one, ExitStack() as opened:
        unnamed = file_system_of(folder) in SYNCS_UNNAMED and _can_be_unnamed(calls, folder, one)
        beside = place if unnamed else folder
        other = opened.enter_context(_file(calls, beside))
        exchange = _works(lambda: calls.exchange(one, other))
        fresh = temporary_name(calls, beside)
        no_replace = _works(lambda: calls.rename_new(one, fresh)) and not _overwrites(calls, fresh, other)
        with suppress(FileNotFoundError):
            calls.rename(fresh, one)
        links = _works(lambda: calls.link(one, fresh))
        with suppress(FileNotFoundError):
            calls.unlink(fresh)
        leases = remote_file_system(folder) is None and _can_lease(calls, one)
    return Protection(exchange=exchange, no_replace=no_replace, links=links, leases=leases, unnamed=unnamed)


@contextmanager
def _file(calls: SystemCalls, folder: str) -> Iterator[str]:
    path = temporary_name(calls, folder)
    calls.close(calls.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    try:
        yield path
    finally:
        with suppress(FileNotFoundError):
            calls.unlink(path)


def _can_be_unnamed(calls: SystemCalls, folder: str, named: str) -> bool:
    """Return whether a file created without a name can be named next to `named`, with the mode of `named`."""
    place = os.path.dirname(named)
    path = temporary_name(calls, place)
    try:
        _name_later(calls, folder, path)
        mode = _name_later(calls, place, path)
    except OSError as failure:
        if failure.errno in UNSUPPORTED or failure.errno in (errno.EISDIR, errno.ENOENT, errno.EMLINK):
            return False  # ENOENT: /proc is missing
        raise
    return mode == calls.lstat(named).st_mode  # before Linux 6.0 the umask may be ignored


def _name_later(calls: SystemCalls, folder: str, path: str) -> int:
    """Create a file without a name, give it a name, and remove it again. Return its mode."""
    descriptor = calls.open(folder, UNNAMED)
    try:
        calls.link_unnamed(descriptor, path)
        calls.unlink(path)
        return calls.fstat(descriptor).st_mode
    finally:
        calls.close(descriptor)


def _works(call: Callable[[], None]) -> bool:
    try:
        call()
    except OSError as failure:
        if failure.errno in UNSUPPORTED or failure.errno == errno.EMLINK:
            return False
        raise
    return True


def _overwrites(calls: SystemCalls, source: str, target: str) -> bool:
    """Return whether a rename overwrites the target, because some file systems ignore unknown flags."""
    try:
        calls.rename_new(source, target)
    except FileExistsError:
        return False
    calls.rename(target, source)
    return True


def _can_lease(calls: SystemCalls, path: str) -> bool:
    """Return whether leases work.

    A lease must be granted while no process has the file open for writing, and refused otherwise.
    """
    reading = calls.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        calls.lease(reading)
        calls.end_lease(reading)
        writing = calls.open(path, os.O_WRONLY | os.O_NONBLOCK)
        try:
            calls.lease(reading)
        except BlockingIOError:
            return True
        finally:
            calls.close(writing)
    except OSError:
        return False
    finally:
        calls.close(reading)
    return False


def remote_file_system(folder: str) -> str | None:
    """Return the type of a file system that other machines can change, or None for other file systems."""
    kind = file_system_of(folder)
    return kind if kind is not None and kind.startswith(_LEASES_LIE) else None


def file_system_of(folder: str) -> str | None:
    """Return the type of the file system, for example `ext4`, or None if it is unknown."""
    place = os.path.realpath(folder)
    try:
        with open(_MOUNTS, encoding="utf-8", errors="replace") as mounts:
            lines = mounts.read().splitlines()
    except OSError:
        return None
    found: tuple[int, str] | None = None
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 5 or not kinds[0]:
            continue
        point = fields[4].replace("\\040", " ").rstrip("/")
        if (place == point or place.startswith(point + "/")) and (found is None or len(point) >= found[0]):
            found = len(point), kinds[0]
    return found[1] if found else None
