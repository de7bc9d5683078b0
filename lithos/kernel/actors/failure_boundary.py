"""Failure boundary for background work. It logs failures, and the work is retried later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import LithosError

log = get_logger("lithos.enrichment")


async def survive(event: str, work: Callable[[], Awaitable[object]], **fields: Any) -> bool:
    """Run background work. If it raises, log the failure as `event` and return False.

    No caller waits for background work, so even a bug in it must not end the server. `Cancelled` propagates.
    """
    try:
        await work()
    except (LithosError, DatabaseFailed, OSError, ActorDown, ShuttingDown) as failure:
        log.warning(event, reason=str(failure), **fields)
        return False
    except Exception as crash:
        log.error(event, exc_info=crash, **fields)
        return False
    return True
