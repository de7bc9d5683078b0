"""Stores that stay open on disk while a server runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

from attrs import frozen

from lithos.kernel.databases.database import Database
from lithos.kernel.databases.lock import OwnerLock
from lithos.kernel.databases.private_files import sync_folder
from lithos.kernel.log import get_logger

log = get_logger("lithos.app")


@frozen
class Occasion:
    """Folders and start time with which a server opens its stores."""

    #: The data directory, and the folder inside it that contains the databases.
    data: Path
    private: Path
    now: datetime
    #: Folders that this start has created.
    fresh: frozenset[Path]


@frozen
class Stores:
    """Stores that stay open on disk while a server runs. They are closed in reverse order."""

    lock: OwnerLock
    #: Stores by the class that their opener promises. None if a store is switched off.
    opened: Mapping[Any, Any]
    #: Stack that closes all stores, the last one first, even if one fails to close.
    closing: ExitStack

    @property
    def databases(self) -> tuple[Database, ...]:
        """Return the open databases that are checked for removal by other programs."""
        return tuple(each for each in self.opened.values() if isinstance(each, Database))


def sync_names(folders: Iterable[Path]) -> None:
    """Make the names in folders durable: files synced below a lost name are lost with it."""
    for folder in sorted(folders):
        try:
            sync_folder(folder)
        except OSError as failure:  # The folder is unreadable, or its file system cannot sync folders.
            log.warning("folder not synced", folder=str(folder), reason=str(failure))
