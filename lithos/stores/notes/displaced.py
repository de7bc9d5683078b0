"""The folder `.lithos/displaced/`: backup copies of bytes that would otherwise be lost. It blocks.

Each is a file with the bytes as another program saved them and, beside it, a `.json` that names the note.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from attrs import frozen

from lithos.core.times import format_time
from lithos.stores.notes.values import digest_of

#: The name of the folder in `.lithos`.
DISPLACED: Final = "displaced"
KEPT_FOR: Final = timedelta(days=7)
KEPT_BYTES: Final = 100 * 1024 * 1024
_STAMP: Final = "%Y%m%dT%H%M%S.%fZ"
#: Characters of a note's name in that of its displaced bytes: at most 240 bytes.
_NAME_LENGTH: Final = 60


@frozen
class DisplacedFile:
    """One file in the folder, the path of its note in `knowledge/`, and when it was put there."""

    path: Path
    note: str
    time: datetime
    size: int

    @property
    def digest(self) -> str:
        """The beginning of the hash of its bytes."""
        return self.path.name.split("-")[1]


class Displaced:
    """The copies, with retention: the oldest goes when it is 7 days old or the folder exceeds 100 MB."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, note: str, data: bytes, now: datetime) -> Path:
        """Store bytes durably; the same bytes of one note are stored once. Raises `OSError`."""
        digest = digest_of(data)
        self.folder.mkdir(parents=True, exist_ok=True)
        stem = note.rpartition("/")[2][:_NAME_LENGTH]
        for known in self.folder.glob(f"*-{digest[:16]}-*.json"):
            with suppress(OSError, ValueError):
                if json.loads(known.read_bytes())["note"] == note:
                    return known.with_name(known.name.removesuffix(".json"))
        path = self.folder / f"{now.astimezone(UTC).strftime(_STAMP)}-{digest[:16]}-{stem}"
        about = {"note": note, "time": format_time(now), "size": len(data), "digest": digest}
        _write(path, data)
        _write(path.with_name(f"{path.name}.json"), json.dumps(about, ensure_ascii=False).encode())
        _sync(self.folder)
        return path

    def list(self) -> list[DisplacedFile]:
        """The copies, oldest first."""
        with suppress(OSError):  # a folder that cannot be read is reported by the check of the data directory
            return sorted(self._find(), key=lambda file: file.time)
        return []

    def _find(self) -> Iterator[DisplacedFile]:
        for path in self.folder.glob("*"):
            if path.name.startswith(".") or path.name.endswith(".json"):
                continue
            with suppress(OSError, ValueError):
                time = datetime.strptime(path.name.split("-")[0], _STAMP).replace(tzinfo=UTC)
                yield DisplacedFile(path, _note_of(path), time, path.stat().st_size)

    def prune(self, now: datetime) -> int:
        """Apply the retention, oldest first; the newest never goes for its size. Returns how many went."""
        files = self.list()
        left = sum(file.size for file in files)
        dropped = 0
        for file in files:
            if now - file.time <= KEPT_FOR and (left <= KEPT_BYTES or file is files[-1]):
                break
            with suppress(OSError):
                file.path.unlink()
                file.path.with_name(f"{file.path.name}.json").unlink(missing_ok=True)
                dropped += 1
            left -= file.size
        return dropped


def _note_of(path: Path) -> str:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads(path.with_name(f"{path.name}.json").read_bytes())["note"])
    return path.name.split("-", 2)[-1]


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.tmp"[:250])
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
