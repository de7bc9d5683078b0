"""Data directory that seems to be in use.

The directory's lock is held and names an address where any program may listen.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lithos.kernel.databases.lock import OwnerLock, OwnerRecord

STARTED = "2026-01-01T00:00:00+00:00"


@contextmanager
def owning(data: Path, url: str | None, token: str | None = "s3cret") -> Iterator[None]:
    (data / ".lithos").mkdir(parents=True, exist_ok=True)
    lock = OwnerLock(data / ".lithos" / "lock")
    lock.acquire(STARTED)
    try:
        lock.publish(OwnerRecord(os.getpid(), socket.gethostname(), url, STARTED, token))
        yield
    finally:
        lock.release()
