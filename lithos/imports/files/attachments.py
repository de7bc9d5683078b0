"""Files that an import writes in addition to notes: copies of attachments, and the import ledger. Blocks.

An attachment copy is either complete and durable or absent. It never overwrites other content. The ledger,
`.lithos/imported`, lists all records that once became notes. It prevents the next import from recreating a
note that was deleted here. An entry is a hash of the record's kind and id (eight bytes), appended after the
note is durable. Only records without a note are looked up. If the ledger is lost, it is rebuilt from the
existing notes. The next import then recreates notes that were deleted before.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from lithos.kernel.databases.private_files import opened, replace_file, sync_folder
from lithos.kernel.operating_system import CLOSE_ON_EXEC, NO_FOLLOW, read_at, write_at

#: Maximum number of entries in the ledger. If the ledger is full, the older half is deleted.
MOST: Final = 1_000_000
_SIZE: Final = 8
NAME: Final = "imported"


def key_of(kind: str, record_id: str) -> int:
    """Return the 64-bit hash of a record's kind and id."""
    data = f"{kind}\0{record_id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=_SIZE).digest(), "little")


class ImportLedger:
    """Ledger of the records that were imported into one data directory.

    Only one import at a time may use it.
    """

    def __init__(self, private: Path, most: int = MOST) -> None:
        """`private` is the `.lithos` folder, in which the ledger is stored."""
        self._path = private / NAME
        self._most = most
        self._known = np.empty(0, dtype="<u8")

    def load(self) -> None:
        """Read the ledger file. A missing file counts as empty. An incomplete last entry is ignored."""
        try:
            with self._path.open("rb") as file:
                data = file.read(2 * self._most * _SIZE)
        except FileNotFoundError:
            data = b""
        whole = len(data) - len(data) % _SIZE
        self._known = np.unique(np.frombuffer(data[:whole], dtype="<u8"))

    def __contains__(self, key: object) -> bool:
        """Return whether the record had been imported when `load` was called."""
        if not isinstance(key, int):
            return False
        place = int(np.searchsorted(self._known, np.uint64(key)))
        return place < len(self._known) and int(self._known[place]) == key

    def add(self, keys: Iterable[int]) -> None:
        """Append `keys` to the file and sync the file. Raises `OSError`."""
        data = b"".join(struct.pack("<Q", key) for key in keys)
        if not data:
            return
        with opened(self._path, os.O_RDWR | os.O_CREAT) as descriptor:
            size = os.fstat(descriptor).st_size
            size -= size % _SIZE  # drop an entry that was only partly appended
            if (size + len(data)) // _SIZE > self._most:
                self._shrink(descriptor, size, data)
                return
            write_at(descriptor, data, size)
            os.ftruncate(descriptor, size + len(data))
            os.fsync(descriptor)

    def _shrink(self, descriptor: int, size: int, data: bytes) -> None:
        """Replace the file with its newer half, followed by `data`."""
        kept = self._most // 2 * _SIZE
        newest = (read_at(descriptor, kept, max(size - kept, 0)) + data)[-self._most * _SIZE :]
        replace_file(self._path, newest, self._path.with_name(f"{NAME}.new"), 0o600)


_BLOCK: Final = 1 << 20
#: Errors that file systems without hard links return.
_NO_LINKS: Final = frozenset((errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK))
#: Name prefix of temporary copies. The leading dot hides them from the notes folder.
PREFIX: Final = ".import-"

COPIED, EQUAL, CONFLICT, FAILED = "copied", "unchanged", "conflict", "failed"


def copy_attachment(root: Path, path: str, source: Path, *, dry_run: bool) -> tuple[str, str]:
    """Copy a file to `path` below `root`. Return the outcome, and the reason if it was not copied. Blocks.

    An existing file is never replaced. If the file at `path` has other content, the outcome is a conflict.
    """
    parts = path.split("/")
    if any(not part or part.startswith(".") or "\0" in part for part in parts):
        return FAILED, f"{path!r} is not a path below the notes folder"
    target, top = root.joinpath(*parts), os.path.realpath(root)
    try:
        inside = os.path.realpath(target.parent)
        if inside != top and not inside.startswith(top.rstrip(os.sep) + os.sep):
            return FAILED, f"{path} leads outside the notes folder"
        # The temporary name depends only on the path. If an import is killed, the next import finds and
        # removes its temporary file.
        temporary = target.with_name(PREFIX + hashlib.blake2b(path.encode(), digest_size=8).hexdigest())
        if os.path.lexists(target):
            if not _is_equal(source, target):
                return CONFLICT, f"{path} already exists with other content and stays unchanged"
            if not dry_run:
                with suppress(FileNotFoundError):
                    temporary.unlink()
            return EQUAL, ""
        if dry_run:
            return COPIED, ""
        _make_folders(target.parent)
        return _copy(source, temporary, target)
    except OSError as failure:
        return FAILED, f"the file cannot be copied: {failure.strerror or failure}"


def _copy(source: Path, temporary: Path, target: Path) -> tuple[str, str]:
    with source.open("rb") as origin:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_FOLLOW | CLOSE_ON_EXEC
        try:
            with os.fdopen(os.open(temporary, flags, 0o666), "wb") as file:
                shutil.copyfileobj(origin, file, _BLOCK)
                file.flush()
                os.fsync(file.fileno())
            status = os.fstat(origin.fileno())
            os.utime(temporary, ns=(status.st_atime_ns, status.st_mtime_ns))
            _place(temporary, target)
        except BaseException:
            with suppress(FileNotFoundError):
                temporary.unlink()
            raise
    sync_folder(target.parent)
    return COPIED, ""


def _place(temporary: Path, target: Path) -> None:
    """Rename the temporary file to `target`.

    Raises `FileExistsError` if `target` has been created in the meantime.
    """
    try:
        os.link(temporary, target)
    except OSError as failure:
        if failure.errno not in _NO_LINKS:
            raise
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | CLOSE_ON_EXEC, 0o666))
        os.replace(temporary, target)
    else:
        temporary.unlink()


def _make_folders(folder: Path) -> None:
    missing: list[Path] = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        sync_folder(each.parent)


def _is_equal(one: Path, other: Path) -> bool:
    if not other.is_file() or one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as left, other.open("rb") as right:
        while block := left.read(_BLOCK):
            if block != right.read(_BLOCK):
                return False
        return not right.read(1)
