"""The files of a backup: the layout of a data directory without what can be rebuilt, and `backup.json`.

`backup.json` comes last, by one renaming: where it is, the backup is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

import cattrs
from attrs import field, frozen

from lithos.stores.backup_links import leads_out
from lithos.stores.files import TEMPORARY_PREFIX, TEMPORARY_SUFFIX

INDEX: Final = "backup.json"
FORMAT: Final = 1
_BLOCK: Final = 1 << 20

#: Told of each file: how many are done, and how many there will be at least.
Told = Callable[[int, int], None]


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
    """What `backup.json` says; `files` are named by their path, `journal_head` is the last seq.

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


def _raise(error: OSError) -> None:
    raise error


def copy_file(source: Path, target: Path) -> SavedFile | None:
    """Copy one file durably as it is now, whole; None when it has gone meanwhile."""
    try:
        descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(descriptor, "rb") as reading:
        status = os.fstat(descriptor)
        target.parent.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        with target.open("xb") as writing:
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
    """Make the names of all files below durable."""
    for folder, _, _ in os.walk(root):
        sync_folder(Path(folder))


def sync_folder(folder: Path) -> None:
    """Make the names of the files in one folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_index(directory: Path, index: BackupIndex) -> None:
    """Write `backup.json` in one step, after everything else."""
    sync_folders(directory)
    staged = directory / f"{INDEX}.new"
    with staged.open("w", encoding="utf-8") as stream:
        json.dump(cattrs.unstructure(index), stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    staged.replace(directory / INDEX)
    sync_folders(directory)


def read_index(directory: Path) -> BackupIndex:
    """Read `backup.json`. Raises `BackupRefused`."""
    path = directory / INDEX
    try:
        document: Any = json.loads(path.read_bytes())
        index = cattrs.structure(document, BackupIndex)
    except FileNotFoundError:
        raise BackupRefused(
            f"{directory} has no {INDEX}: it is no backup, or one that was not finished. Choose another."
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
    for name in (*index.files, *index.links):
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or "\\" in name:
            raise BackupRefused(
                f"{path} names {name!r}, which is outside of a data directory. Do not use it."
            )
    for link, target in index.links.items():
        if leads_out(link, target):
            raise BackupRefused(f"{path} has {link!r} lead to {target!r}, which is elsewhere. Do not use it.")
    return index


def verify_files(directory: Path, index: BackupIndex, told: Told) -> None:
    """Compare every file with the index, and look for others. Raises `BackupRefused`."""
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
            f"The backup {directory} is not what was saved: {'; '.join(problems[:5])}{more}. Nothing was "
            "restored. Use another backup."
        )
