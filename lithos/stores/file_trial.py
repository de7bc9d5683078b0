"""A trial whether a folder of notes can be written to."""

from __future__ import annotations

import os
from pathlib import Path

from lithos.stores.files import TEMPORARY_PREFIX, TEMPORARY_SUFFIX

#: More than any file system keeps beside the name, so that it takes a block.
_SIZE = 4_096


def try_writing(folder: Path) -> None:
    """Write a temporary file durably and remove it again. Blocks; raises `OSError` where that fails."""
    target = os.path.join(folder, f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}{TEMPORARY_SUFFIX}")
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            left = _SIZE
            while left:  # a nearly full disk takes a part
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
