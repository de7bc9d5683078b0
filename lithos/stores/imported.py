"""The ledger of imports, `.lithos/imported`: which records became notes once, so that a note that was deleted
here does not come back with the next import.

Eight bytes a record (a hash of its kind and id), appended once its note is durable. What stands in it is only
asked for records without a note: when it is lost, the notes that are there fill it anew, and notes deleted
before come back with the next import. Blocks.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np

from lithos.stores import opened

#: Records that are remembered; from then on the older half is forgotten.
MOST: Final = 1_000_000
_SIZE: Final = 8
NAME: Final = "imported"


def key_of(kind: str, record_id: str) -> int:
    """The 64-bit hash of a record's kind and id."""
    data = f"{kind}\0{record_id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=_SIZE).digest(), "little")


class ImportLedger:
    """The ledger of one data directory; one import at a time uses it."""

    def __init__(self, private: Path, most: int = MOST) -> None:
        """`private` is the folder `.lithos`."""
        self._path = private / NAME
        self._most = most
        self._known = np.empty(0, dtype="<u8")

    def load(self) -> None:
        """Read the file; one that is missing is empty, and what is torn at its end is left out."""
        try:
            with self._path.open("rb") as file:
                data = file.read(2 * self._most * _SIZE)
        except FileNotFoundError:
            data = b""
        whole = len(data) - len(data) % _SIZE
        self._known = np.unique(np.frombuffer(data[:whole], dtype="<u8"))

    def __contains__(self, key: object) -> bool:
        """Whether the record was imported before the last `load`."""
        if not isinstance(key, int):
            return False
        place = int(np.searchsorted(self._known, np.uint64(key)))
        return place < len(self._known) and int(self._known[place]) == key

    def add(self, keys: Iterable[int]) -> None:
        """Append keys and sync the file. Raises `OSError`."""
        data = b"".join(struct.pack("<Q", key) for key in keys)
        if not data:
            return
        with opened(self._path, os.O_RDWR | os.O_CREAT) as descriptor:
            size = os.fstat(descriptor).st_size
            size -= size % _SIZE  # an append was torn
            if (size + len(data)) // _SIZE > self._most:
                self._shrink(descriptor, size, data)
                return
            os.pwrite(descriptor, data, size)
            os.ftruncate(descriptor, size + len(data))
            os.fsync(descriptor)

    def _shrink(self, descriptor: int, size: int, data: bytes) -> None:
        """Replace the file by its newer half and `data`."""
        kept = self._most // 2 * _SIZE
        newest = (os.pread(descriptor, kept, max(size - kept, 0)) + data)[-self._most * _SIZE :]
        temporary = self._path.with_name(f"{NAME}.new")
        with open(temporary, "wb", opener=lambda name, mode: os.open(name, mode, 0o600)) as file:
            file.write(newest)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._path)
