"""Stores on disk that are open while a server runs."""

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
    """The folders and the start time that a server uses to open its stores."""

    #: The data directory, and the folder in it that contains the databases.
    data: Path
    private: Path
    now: datetime
    #: Folders that this start has created.
    fresh: frozenset[Path]


@frozen
class Stores:
    """Stores on disk that are open while a server runs. They are closed in reverse order."""

    lock: OwnerLock
    #: Stores by the class that their opener returns. A store that is switched off is None.
    opened: Mapping[Any, Any]
    #: Stack that closes all stores, last store first. If closing one store fails, the remaining stores are
    #: still closed.
    closing: ExitStack

    @property
    def databases(self) -> tuple[Database, ...]:
        """Return the open databases. They are checked for removal by other programs."""
        return tuple(each for each in self.opened.values() if isinstance(each, Database))


def sync_names(folders: Iterable[Path]) -> None:
    """Make the file names in folders durable. If a name is lost, the synced files below it are lost too."""
    for folder in sorted(folders):
        try:
            sync_folder(folder)
        except OSError as failure:  # The folder is unreadable, or its file system cannot sync folders.
            log.warning("folder not synced", folder=str(folder), reason=str(failure))
