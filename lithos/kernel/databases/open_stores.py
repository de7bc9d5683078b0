"""The stores that are open on disk while a server runs."""

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
    """Where and when the stores of a server are opened."""

    #: The data directory, and the folder of the databases in it.
    data: Path
    private: Path
    now: datetime
    #: Folders that this start creates.
    fresh: frozenset[Path]


@frozen
class Stores:
    """The stores that are open on disk; closed in reverse order."""

    lock: OwnerLock
    #: By the class that its opener promises; None if it is switched off.
    opened: Mapping[Any, Any]
    #: Closes everything, the last one first, even if a step fails.
    closing: ExitStack

    @property
    def databases(self) -> tuple[Database, ...]:
        """Databases that are checked for removal by other programs while they are open."""
        return tuple(each for each in self.opened.values() if isinstance(each, Database))


def sync_names(folders: Iterable[Path]) -> None:
    """Make the names in folders durable: files synced below a lost name are lost with it."""
    for folder in sorted(folders):
        try:
            sync_folder(folder)
        except OSError as failure:  # an unreadable folder, or a file system that cannot sync folders
            log.warning("folder not synced", folder=str(folder), reason=str(failure))
