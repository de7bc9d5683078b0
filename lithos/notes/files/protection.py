"""Probes how a file system can prevent lost updates.

Capabilities are tested, not inferred from the file system's type.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from attrs import evolve, frozen

from lithos.kernel.operating_system import NO_WAIT
from lithos.notes.files.system_calls import UNNAMED, UNSUPPORTED, SystemCalls
from lithos.notes.files.values import temporary_name

#: File systems on which a lease does not detect remote writers (such as `fuse`) or is always refused (such as
#: `nfs`).
_LEASES_LIE: Final = ("nfs", "fuse", "cifs", "smb", "9p", "virtiofs", "ceph", "afs", "lustre")
#: File systems that are known to sync a file without a name, so that later only the folder must be synced. A
#: test cannot show this: btrfs accepts the sync of such a file but does nothing, because the file does not
#: have a name yet.
SYNCS_UNNAMED: Final = frozenset({"ext2", "ext3", "ext4", "xfs", "tmpfs"})
_MOUNTS: Final = "/proc/self/mountinfo"


@frozen
class Protection:
    """Capabilities of the notes folder: file exchange, rename without overwriting, links, and leases."""

    exchange: bool
    no_replace: bool
    links: bool
    leases: bool
    #: Whether a file can be written and synced before it has a name.
    unnamed: bool
    #: Whether files can be exchanged with the folder for private files and renamed into that folder.
    reaches_place: bool = False

    @property
    def can_place(self) -> bool:
        """Return whether a file can get a name without overwriting another file.

        Without this capability, Lithos does not write notes.
        """
        return self.no_replace or self.links


def probe_protection(calls: SystemCalls, folder: str, place: str | None = None) -> Protection:
    """Probe the file system with two temporary files.

    If `place`, a folder for private files, is given, at least one of the two files is created there.

    The place may be on another volume, which only a test shows: a bind mount has the same device number, a
    subvolume another number. So the test uses a file of the notes folder. If possible, this file is created
    without a name and then named in the place. Otherwise, the file is exchanged with a file of the place.
    Raise `OSError` if the notes folder cannot be written.
    """
    if place is not None:
        with suppress(OSError):  # errors of the notes folder are reported by the later probe
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
    """Return whether a file created without a name can be named next to `named`.

    The new file must also get the same mode as `named`.
    """
    place = os.path.dirname(named)
    path = temporary_name(calls, place)
    try:
        _name_later(calls, folder, path)
        mode = _name_later(calls, place, path)
    except OSError as failure:
        if failure.errno in UNSUPPORTED or failure.errno in (errno.EISDIR, errno.ENOENT, errno.EMLINK):
            return False  # /proc is missing (ENOENT)
        raise
    return mode == calls.lstat(named).st_mode  # Linux before 6.0 may ignore the umask


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
    """Return whether a rename overwrites its target. Some file systems ignore unknown flags."""
    try:
        calls.rename_new(source, target)
    except FileExistsError:
        return False
    calls.rename(target, source)
    return True


def _can_lease(calls: SystemCalls, path: str) -> bool:
    """Return whether leases work on this file system.

    A lease must be granted if no program has the file open for writing, and refused otherwise.
    """
    reading = calls.open(path, os.O_RDONLY | NO_WAIT)
    try:
        calls.lease(reading)
        calls.end_lease(reading)
        writing = calls.open(path, os.O_WRONLY | NO_WAIT)
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
    """Return the type of the file system if other machines can change its files, else None."""
    kind = file_system_of(folder)
    return kind if kind is not None and kind.startswith(_LEASES_LIE) else None


def file_system_of(folder: str) -> str | None:
    """Return the type of the file system, for example `ext4`. Return None if the type is unknown."""
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
