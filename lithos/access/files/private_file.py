"""Small files that several processes change. A lock protects each change.

Each change replaces the whole file durably. The new file has mode 0600.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from lithos.kernel.databases.lock import NO_LOCKS
from lithos.kernel.databases.private_files import replace_file, sync_folder
from lithos.kernel.operating_system import CLOSE_ON_EXEC, NO_FOLLOW, try_lock

#: Seconds to wait for a lock that another command has, and seconds between two attempts.
PATIENCE: Final = 10.0
_PAUSE: Final = 0.02


class LockTimeout(Exception):
    """Error if another process has the lock for more than `PATIENCE` seconds."""


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Open and lock the lock file. A second command waits for the lock.

    Raises `LockTimeout`, `FileNotFoundError` if the folder is missing, and `OSError`.
    """
    until = time.monotonic() + PATIENCE
    flags = os.O_RDWR | os.O_CREAT | CLOSE_ON_EXEC | NO_FOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        while not _try_lock(descriptor):
            if time.monotonic() > until:
                raise LockTimeout
            time.sleep(_PAUSE)
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        return try_lock(descriptor)
    except OSError as failure:
        # If the file system has no locks (as on some network shares), two commands may change the file at the
        # same time.
        if failure.errno not in NO_LOCKS:
            raise
    return True


def replace_private(path: Path, document: Any) -> None:
    """Replace a file durably with `document` as JSON. The caller must have locked the file.

    If `OSError` is raised, the file is unchanged.
    """
    data = json.dumps(document, indent=1).encode() + b"\n"
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)  # An earlier crash may have left this temporary file.
    try:
        replace_file(path, data, fresh, 0o600)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        raise
    sync_folder(path.parent)
