"""What is kept of an edited file: a backup beside it, and a record of what was written.

The record is in `$XDG_STATE_HOME/lithos/connections/`, one per file and entry, so that `--remove` knows
whether somebody else changed the file since. Without it the entry alone is taken out.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from attrs import asdict, field, frozen

from lithos.cli.connecting.files import LARGEST, CannotUse, write_new
from lithos.stores.told import sessions_folder

SUFFIX: Final = ".lithos-backup"
_MOST_BACKUPS: Final = 100


@frozen
class Record:
    """An entry that was written to `path` under `name`: the digests of the file before and after it.

    `inserted` is the text that came in; `folders` are those that were made for the file, which was not there
    where `before` is None; `backup` has the bytes of `before`.
    """

    path: str
    name: str
    before: str | None
    after: str
    inserted: str
    parents: int
    entry: Mapping[str, Any]
    backup: str | None = None
    folders: tuple[str, ...] = field(factory=tuple)


def digest_of(data: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


class Keeper:
    """The record and the backup of one entry in one file."""

    def __init__(self, path: Path, name: str, environment: Mapping[str, str]) -> None:
        self._path = path
        self._name = name
        key = os.fsencode(os.path.abspath(path)) + b"\0" + name.encode()
        folder = sessions_folder(environment).with_name("connections")
        self._place = folder / f"{hashlib.sha256(key).hexdigest()[:32]}.json"

    def load(self) -> Record | None:
        """What was written; None where nothing was, or the record is damaged."""
        try:
            found = json.loads(self._place.read_bytes())
            record = Record(**found | {"folders": tuple(found["folders"])})
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        is_ours = (record.path, record.name) == (os.path.abspath(self._path), self._name)
        return record if is_ours and isinstance(record.entry, dict) else None

    def store(self, record: Record) -> None:
        """Remember it. Raises `CannotUse`."""
        try:
            self._place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = self._place.with_name(f"{self._place.name}.{os.getpid()}")
            new.unlink(missing_ok=True)
            write_new(new, json.dumps(asdict(record)).encode())
            new.replace(self._place)
        except OSError as error:
            raise CannotUse(f"{self._place} cannot be written: {error.strerror}.") from error

    def forget(self) -> None:
        """Drop the record."""
        self._place.unlink(missing_ok=True)

    def back_up(self, data: bytes, old: Record | None) -> Path:
        """Keep these bytes beside the file; a backup that already has them is used again."""
        if old is not None and old.backup is not None and self.backup_of(old) == data:
            return Path(old.backup)
        for number in range(1, _MOST_BACKUPS):
            path = self._path.with_name(self._path.name + SUFFIX + (f"-{number}" if number > 1 else ""))
            try:
                write_new(path, data)
            except FileExistsError:
                continue
            except OSError as error:
                raise CannotUse(f"The backup {path} cannot be written: {error.strerror}.") from error
            return path
        raise CannotUse(f"There are {_MOST_BACKUPS - 1} backups beside {self._path}. Move some elsewhere.")

    def backup_of(self, record: Record) -> bytes | None:
        """The bytes before the entry, where the backup still has them."""
        if record.backup is None:
            return None
        with suppress(OSError), open(record.backup, "rb") as file:
            data = file.read(LARGEST + 1)
            return data if digest_of(data) == record.before else None
        return None

    def drop_backup(self, record: Record) -> None:
        """Remove the backup; one that somebody changed stays."""
        if record.backup is not None and self.backup_of(record) is not None:
            with suppress(FileNotFoundError):
                os.unlink(record.backup)
