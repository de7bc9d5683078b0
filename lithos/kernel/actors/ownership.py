"""A periodic check that this process still owns its data directory."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from lithos.kernel.actors.threads import Threads
from lithos.kernel.databases.database import Database
from lithos.kernel.databases.lock import CONFIRM_EVERY, OwnerLock


async def keep_owning(lock: OwnerLock, databases: Sequence[Database] = ()) -> None:
    """Periodically check, until cancelled, that the lock file and the databases are still in place.

    Raises `AlreadyOwned` if another process has taken the data directory.
    """
    looking = Threads()

    def look() -> None:
        lock.confirm()
        for database in databases:
            database.look()

    while True:
        await looking.run(look)
        await trio.sleep(CONFIRM_EVERY)
