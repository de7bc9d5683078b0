"""Backup and restore of files, databases and symbolic links. The index `backup.json` has checksums.

A backup has the same layout as a data directory, but no data that can be rebuilt. Databases are copied as
consistent snapshots (with SQLite's online backup), even while a server runs. `move_counters_ahead` prepares a
restored database. The index lists symbolic links among the notes if their targets are in the backup.
`backup.json` is written last, with one atomic rename. A backup is complete if this file exists.
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
from lithos.kernel.operating_system import CLOSE_ON_EXEC, set_mode
from lithos.notes.files.values import TEMPORARY_PREFIX, TEMPORARY_SUFFIX

PRIVATE: Final = ".lithos"
#: Prefix of folders in the data directory that contain content replaced by a restore.
ASIDE: Final = ".before-restore-"
#: Prefixes of the folders that a restore creates: for an incomplete copy, for a complete copy, and for a copy
#: after the former content was moved aside. A complete copy is always restored, if necessary by the next
#: call. A killed process may leave one of these folders.
STAGED: Final = f"{ASIDE}staged-"
READY: Final = f"{ASIDE}ready-"
_PLACING: Final = f"{ASIDE}placing-"
#: Path of the lock file, which a restore does not replace.
_LOCK: Final = f"{PRIVATE}/lock"


@frozen
class FoundLinks:
    """The links below a folder.

    `inside` maps the path of each link to its target, relative to the folder of the link.

    `elsewhere` lists links to missing files and links out of the folder. Lithos does not read their targets.
    """

    inside: Mapping[str, str] = field(factory=dict)
    elsewhere: tuple[str, ...] = ()


def find_links(root: Path) -> FoundLinks:
    """Return the symbolic links below `root`, sorted by relative path. Raises `OSError`."""
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
    """Return whether a link would lead out of the topmost folder of its path (path traversal)."""
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

#: Progress callback, called for each file: number of finished files, and minimum total.
BackupProgress = Callable[[int, int], None]


class BackupRefused(Exception):
    """Error for a backup that cannot be made or used. The message gives the reason and advice."""


@frozen
class SavedFile:
    """A file in a backup: size in bytes, SHA-256 in hex, modification time in nanoseconds."""

    size: int
    sha256: str
    mtime_ns: int


@frozen(kw_only=True)
class BackupIndex:
    """The content of `backup.json`. `files` are by relative path, and `journal_head` is the last seq.

    `links` are the symbolic links among the notes whose targets are in the backup. `left_out` are all other
    links.
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
    #: Folder of the notes in the backup. If a vault was backed up, the folder is `VAULT`.
    notes: str = "knowledge"


#: Folder in a backup for the notes of a vault, which are outside of the data directory.
VAULT: Final = "vault"


def walk_files(root: Path) -> Iterator[str]:
    """Yield the relative paths of the regular files below `root`, sorted.

    Lithos's temporary files are left out.
    """
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
    """Copy and hash one file durably, and preserve its mtime. Return None if the file was deleted.

    If only the owner may read the file, the copy has the same mode.
    """
    try:
        descriptor = os.open(source, os.O_RDONLY | CLOSE_ON_EXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(descriptor, "rb") as reading:
        status = os.fstat(descriptor)
        target.parent.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        with target.open("xb") as writing:
            if not stat.S_IMODE(status.st_mode) & 0o077:
                set_mode(writing.fileno(), 0o600)
            while block := reading.read(_BLOCK):
                digest.update(block)
                size += writing.write(block)
            writing.flush()
            os.utime(writing.fileno(), ns=(status.st_mtime_ns, status.st_mtime_ns))
            os.fsync(writing.fileno())
    return SavedFile(size, digest.hexdigest(), status.st_mtime_ns)


def describe_file(path: Path) -> SavedFile:
    """Return the size, hash and modification time of a file."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        status = os.fstat(stream.fileno())
    return SavedFile(status.st_size, digest, status.st_mtime_ns)


def sync_folders(root: Path) -> None:
    """Sync `root` and all folders below it, so that the file names in them are durable."""
    for folder, _, _ in os.walk(root):
        sync_folder(Path(folder))


def write_index(directory: Path, index: BackupIndex) -> None:
    """Sync all other files, then write `backup.json` atomically."""
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
            f"{directory} has no {INDEX}: it is not a backup, or the backup was not finished. "
            "Choose another backup."
        ) from None
    except (ValueError, cattrs.BaseValidationError, TypeError) as damage:
        raise BackupRefused(
            f"{path} is not a valid index ({damage}), so the backup cannot be verified. Choose "
            "another backup."
        ) from damage
    if index.format != FORMAT:
        raise BackupRefused(
            f"{path} has format {index.format}, but this Lithos supports only {FORMAT}. Install "
            f"the version that made the backup ({index.version}) or a later one."
        )
    for name in (*index.files, *index.links, index.notes):
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\\" in name:
            raise BackupRefused(
                f"{path} names {name!r}, which is outside of a data directory. Do not use this backup."
            )
    for link, target in index.links.items():
        if leads_out(link, target):
            raise BackupRefused(
                f"{path} has a link {link!r} to {target!r}, which is outside of "
                "the backup. Do not use this backup."
            )
    return index


def verify_files(directory: Path, index: BackupIndex, told: BackupProgress) -> None:
    """Verify size and checksum of every file. Additional files are refused. Raises `BackupRefused`."""
    present = {path for path in walk_files(directory) if path != INDEX}
    problems = [f"{name} is not part of the backup" for name in sorted(present - index.files.keys())]
    for number, (name, saved) in enumerate(index.files.items(), start=1):
        if name not in present:
            problems.append(f"{name} is missing")
            continue
        found = describe_file(directory / name)
        if (found.size, found.sha256) != (saved.size, saved.sha256):
            problems.append(f"{name} differs from the saved file")
        told(number, len(index.files))
    if problems:
        more = f" and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise BackupRefused(
            f"The backup {directory} differs from its index: {'; '.join(problems[:5])}{more}. "
            "Nothing was restored. Choose another backup."
        )


def copy_database(source: Path, target: Path, *, is_live: bool) -> SavedFile | None:
    """Copy a consistent snapshot of a database, even while another process writes to it.

    Return None if the file is missing.
    """
    with snapshot(source, is_live=is_live) as reading:
        if reading is None:
            return None
        copy_content(reading, target)
    return describe_file(target)


def journal_head(path: Path) -> int | None:
    """Return the last seq in the journal of a database that no process is writing."""
    if not path.exists():
        return None
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
        ((head,),) = connection.execute("SELECT MAX(seq) FROM events").fetchall()
    return head if isinstance(head, int) else None


def move_counters_ahead(path: Path, now: datetime) -> None:
    """Advance the counters, so that values of seq and fence assigned after the backup are never reused."""
    if not path.exists():
        return
    CoordinationStore.open(path, now).close()  # opening adds fences, and columns that an older version lacks
    with closing(apsw.Connection(str(path))) as connection, transaction(connection):
        connection.execute(
            "UPDATE meta SET value=MAX(value+1, ?) WHERE name='next_seq'", (int(now.timestamp() * 1000),)
        )


def finish_restore(data: Path) -> Path | None:
    """If there is a complete copy of a backup, replace the content of a data directory with this copy.

    Return the folder that now contains the former content. Only the owner of the data directory may call this
    function. If the process is killed, the next call continues the restore.
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
