"""Who read what: the access log as `/audit` tells it (events-http spec, section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import trio

from lithos.actors.blocking import Blocking
from lithos.actors.coordinator import CoordinatorMailbox, Flush
from lithos.actors.kit import ActorDown, ShuttingDown
from lithos.stores.coordination import CoordinationStore

#: Seconds for accesses that are still in memory to be stored before the log is read.
FLUSH_PATIENCE = 2.0


class AccessLog:
    """Reads the log of accesses."""

    def __init__(self, mailbox: CoordinatorMailbox, store: CoordinationStore, reading: Blocking) -> None:
        self._mailbox = mailbox
        self._store = store
        self._reading = reading

    async def entries(
        self, *, agent: str | None, doc: str | None, after: datetime | None, limit: int
    ) -> list[Mapping[str, Any]]:
        """The newest `limit` accesses that pass, newest first. Raises `DatabaseFailed`."""
        with suppress(ActorDown, ShuttingDown, trio.TooSlowError):
            await self._mailbox.ask(Flush(), within=FLUSH_PATIENCE)
        rows = await self._reading.run(
            lambda: self._store.audit(agent=agent, doc=doc, after=after, limit=limit)
        )
        return [audit_record(row) for row in rows]


def audit_record(row: tuple[int | str, ...]) -> Mapping[str, Any]:
    """One access as an object."""
    return dict(zip(("id", "agent_id", "doc_id", "operation", "timestamp"), row, strict=True))
