"""What the disk gives: files written durably by threads alone, each to a temporary file that is synced and
renamed, and a sync of the folder."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

THREADS = 4


def write_durably(folder: Path, contents: Sequence[bytes], threads: int = THREADS) -> float:
    """Files a second, with these bytes; `folder` must be new."""
    folder.mkdir()
    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda number: _write(folder, number, contents[number]), range(len(contents))))
    return len(contents) / (time.perf_counter() - began)


def _write(folder: Path, number: int, content: bytes) -> None:
    temporary = folder / f".{number}"
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(folder / f"{number}.md")
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
