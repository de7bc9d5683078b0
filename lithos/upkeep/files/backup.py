"""Backup and restore: file and database copies, symbolic links, and the index `backup.json` with checksums.

A backup has the layout of a data directory without what can be rebuilt. Databases are copied as consistent
snapshots of one moment (SQLite's online backup), also while a server runs; `move_counters_ahead` prepares a
restored one. Symbolic links among the notes are listed if they lead to something in the backup. `backup.json`
comes last, by one atomic rename: where it is, the backup is complete.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Final

import apsw
import cattrs
from attrs import field, frozen

from lithos.events.rows.store import CoordinationStore
from lithos.kernel.databases.private_files import PRIVATE_FOLDER, replace_file, sync_folder
from lithos.kernel.databases.sqlite import copy_content, snapshot, transaction
from lithos.notes.files.values import TEMPORARY_PREFIX, TEMPORARY_SUFFIX

PRIVATE: Final = ".lithos"
#: Kept in the data directory when something else takes its place.
ASIDE: Final = ".before-restore-"
#: A copy of a backup while it is made; when it is whole, from when on a restore is always finished; and when
#: the former content has been moved aside. A kill may leave one.
STAGED: Final = f"{ASIDE}staged-"
READY: Final = f"{ASIDE}ready-"
_PLACING: Final = f"{ASIDE}placing-"
#: Left where they are: the lock that is held, and what was set aside before.
_LOCK: Final = f"{PRIVATE}/lock"


@frozen
class FoundLinks:
    """Links below a folder: `inside` maps the path of a link to its target, seen from the link's folder.

    `elsewhere` are those that lead out of the folder, or nowhere: Lithos does not read what is there.
    """

    inside: Mapping[str, str] = field(factory=dict)
    elsewhere: tuple[str, ...] = ()


def find_links(root: Path) -> FoundLinks:
    """The symbolic links below `root`, by relative path, sorted. Raises `OSError`."""
    real_root = os.path.realpath(root)
    inside: dict[str, str] = {}
    elsewhere: list[str] = []
    for folder, folders, names in os.walk(real_root, onerror=_raise):
        for name in (*folders, *names):
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                continue
            target = os.path.realpath(path)
            place = os.path.relpath(path, real_root).replace(os.sep, "/")
            if os.path.exists(target) and (target + os.sep).startswith(real_root + os.sep):
                inside[place] = os.path.relpath(target, folder).replace(os.sep, "/")
            else:
                elsewhere.append(place)
    return FoundLinks(dict(sorted(inside.items())), tuple(sorted(elsewhere)))


def _raise(error: OSError) -> None:
    raise error


def leads_out(link: str, target: str) -> bool:
    """Path traversal check: whether a link would lead out of the topmost folder of its path."""
    top, *_ = PurePosixPath(link).parts
    reached = os.path.normpath(os.path.join(os.path.dirname(link), target))
    return target.startswith("/") or PurePosixPath(reached).parts[:1] != (top,)


def make_links(root: Path, links: Mapping[str, str]) -> None:
    """Create symbolic links below `root`."""
    for link, target in links.items():
        path = root / link
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)


INDEX: Final = "backup.json"
FORMAT: Final = 1
_BLOCK: Final = 1 << 20

#: Progress callback, per file: how many are done, and how many there will be at least.
BackupProgress = Callable[[int, int], None]


class BackupRefused(Exception):
    """The backup cannot be made or used; the message says why and what to do."""


@frozen
class SavedFile:
    """One file: size in bytes, SHA-256 in hex, time of change in nanoseconds."""

    size: int
    sha256: str
    mtime_ns: int


@frozen(kw_only=True)
class BackupIndex:
    """The content of `backup.json`: `files` by relative path, `journal_head` is the last seq.

    `links` are the symbolic links among the notes that lead to one of the files or to a folder of them;
    `left_out` are those that lead elsewhere.
    """

    format: int
    version: str
    started_at: str
    finished_at: str
    journal_head: int | None
    counts: Mapping[str, int]
    files: Mapping[str, SavedFile] = field(repr=False)
    links: Mapping[str, str] = field(factory=dict)
    left_out: tuple[str, ...] = ()
    #: The folder of the notes in the backup; `VAULT` when they are those of a vault.
    notes: str = "knowledge"


#: The place in a backup for the notes of a vault, which are outside of the data directory.
VAULT: Final = "vault"


def walk_files(root: Path) -> Iterator[str]:
    """Paths of the regular files below `root`, relative, sorted; not our temporary ones, nor links."""
    found: list[str] = []
    for folder, _, names in os.walk(root, onerror=_raise):
        for name in names:
            if name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX):
                continue
            path = os.path.join(folder, name)
            try:
                is_file = stat.S_ISREG(os.lstat(path).st_mode)
            except FileNotFoundError:
                continue
            if is_file:
                found.append(os.path.relpath(path, root).replace(os.sep, "/"))
    yield from sorted(found)


def copy_file(source: Path, target: Path) -> SavedFile | None:
    """Copy one file durably, with its mtime, and hash it on the way; None if the file was deleted.

    Files that only their owner may read keep that mode.
    """
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(descriptor, "rb") as reading:
        status = os.fstat(descriptor)
        target.parent.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        with target.open("xb") as writing:
            if not stat.S_IMODE(status.st_mode) & 0o077:
                os.fchmod(writing.fileno(), 0o600)
            while block := reading.read(_BLOCK):
                digest.update(block)
                size += writing.write(block)
            writing.flush()
            os.utime(writing.fileno(), ns=(status.st_mtime_ns, status.st_mtime_ns))
            os.fsync(writing.fileno())
    return SavedFile(size, digest.hexdigest(), status.st_mtime_ns)


def describe_file(path: Path) -> SavedFile:
    """Size, hash and time of a file."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        status = os.fstat(stream.fileno())
    return SavedFile(status.st_size, digest, status.st_mtime_ns)


def sync_folders(root: Path) -> None:
    """Sync all folders below, so that the names of their files are durable."""
    for folder, _, _ in os.walk(root):
        sync_folder(Path(folder))


def write_index(directory: Path, index: BackupIndex) -> None:
    """Write `backup.json` atomically, after everything else is synced."""
    sync_folders(directory)
    content = json.dumps(cattrs.unstructure(index), indent=1).encode()
    replace_file(directory / INDEX, content, directory / f"{INDEX}.new")
    sync_folders(directory)


def read_index(directory: Path) -> BackupIndex:
    """Read and validate `backup.json`. Raises `BackupRefused`."""
    path = directory / INDEX
    try:
        document: Any = json.loads(path.read_bytes())
        index = cattrs.structure(document, BackupIndex)
    except FileNotFoundError:
        raise BackupRefused(
            f"{directory} has no {INDEX}: it is not a backup, or the backup was not finished. Choose another."
        ) from None
    except (ValueError, cattrs.BaseValidationError, TypeError) as damage:
        raise BackupRefused(
            f"{path} cannot be understood ({damage}), so nothing can be verified. Choose another backup."
        ) from damage
    if index.format != FORMAT:
        raise BackupRefused(
            f"{path} has format {index.format}, this Lithos knows {FORMAT}. Install the version that made "
            f"it ({index.version}) or a later one."
        )
    for name in (*index.files, *index.links, index.notes):
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\\" in name:
            raise BackupRefused(
                f"{path} names {name!r}, which is outside of a data directory. Do not use it."
            )
    for link, target in index.links.items():
        if leads_out(link, target):
            raise BackupRefused(f"{path} has {link!r} lead to {target!r}, which is elsewhere. Do not use it.")
    return index


def verify_files(directory: Path, index: BackupIndex, told: BackupProgress) -> None:
    """Verify size and checksum of every file, and that there are no others. Raises `BackupRefused`."""
    present = {path for path in walk_files(directory) if path != INDEX}
    problems = [f"{name} is not part of the backup" for name in sorted(present - index.files.keys())]
    for number, (name, saved) in enumerate(index.files.items(), start=1):
        if name not in present:
            problems.append(f"{name} is missing")
            continue
        found = describe_file(directory / name)
        if (found.size, found.sha256) != (saved.size, saved.sha256):
            problems.append(f"{name} has other bytes than were saved")
        told(number, len(index.files))
    if problems:
        more = f" and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise BackupRefused(
            f"The backup {directory} differs from its list: {'; '.join(problems[:5])}{more}. Nothing was "
            "restored. Choose another backup."
        )


def copy_database(source: Path, target: Path, *, is_live: bool) -> SavedFile | None:
    """Copy a consistent snapshot of a database, while others may write it; None for a missing file."""
    with snapshot(source, is_live=is_live) as reading:
        if reading is None:
            return None
        copy_content(reading, target)
    return describe_file(target)


def journal_head(path: Path) -> int | None:
    """The last seq in the journal of a database that no process writes."""
    if not path.exists():
        return None
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        ((head,),) = connection.execute("SELECT MAX(seq) FROM events").fetchall()
    return head if isinstance(head, int) else None


def move_counters_ahead(path: Path, now: datetime) -> None:
    """Advance counters, so that no seq and no fence assigned after the copy is assigned again."""
    if not path.exists():
        return
    CoordinationStore.open(path, now).close()  # fences, and columns of an older version
    with closing(apsw.Connection(str(path))) as connection, transaction(connection):
        connection.execute(
            "UPDATE meta SET value=MAX(value+1, ?) WHERE name='next_seq'", (int(now.timestamp() * 1000),)
        )


def finish_restore(data: Path) -> Path | None:
    """Put the whole copy of a backup in the place of what is there, if there is one; for the owner.

    Return where the former content is now. If this is killed at any moment, the next call continues.
    """
    aside: Path | None = None
    for staged in [*data.glob(f"{STAGED}*")]:
        shutil.rmtree(staged)
    for ready in [*data.glob(f"{READY}*")]:
        stamp = ready.name.removeprefix(READY)
        _move_aside(data, data / f"{ASIDE}{stamp}")
        sync_folder(data)
        ready.rename(data / f"{_PLACING}{stamp}")
        sync_folder(data)
    for placing in [*data.glob(f"{_PLACING}*")]:
        _move_in(placing, data)
        sync_folders(data / PRIVATE)
        sync_folder(data)
        shutil.rmtree(placing)
        former = data / f"{ASIDE}{placing.name.removeprefix(_PLACING)}"
        aside = former if former.exists() else None
    return aside


def _move_aside(data: Path, aside: Path) -> None:
    for path in sorted(data.iterdir()):
        if path.name.startswith(ASIDE):
            continue
        inside = [path] if path.name != PRIVATE or not path.is_dir() else sorted(path.iterdir())
        for one in inside:
            name = one.relative_to(data)
            if name.as_posix() != _LOCK:
                (aside / name).parent.mkdir(parents=True, exist_ok=True)
                one.rename(aside / name)


def _move_in(staged: Path, data: Path) -> None:
    for path in sorted(staged.iterdir()):
        inside = [path] if path.name != PRIVATE else sorted(path.iterdir())
        (data / PRIVATE).mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        for one in inside:
            one.rename(data / one.relative_to(staged))
