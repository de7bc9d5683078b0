"""Agents (registration, last seen), the access log behind `/audit` and the durable cursors of subscribers.

Cursors: docs/spec/events-http.md §4; access log: section 6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Protocol

import trio

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import CoordinatorMailbox, Flush, MoveCursor, RegisterAgent
from lithos.events.model.agents import Agent
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown, honest_outcome
from lithos.kernel.actors.threads import Blocking
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import StorageFailed


class Agents:
    """The use cases around agents."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    async def register(
        self, agent_id: str, name: str | None, kind: str | None, metadata: Mapping[str, Any] | None
    ) -> bool:
        """Register an agent (insert or merge), durably; True when it is new."""
        message = RegisterAgent(agent_id, name, kind, metadata)
        with honest_outcome("Look with lithos_agent_info before you retry."):
            return await self._coordinator.mailbox.ask(message)

    def get(self, agent_id: str) -> Agent | None:
        """One agent."""
        return self._coordinator.agents.get(agent_id)

    def list_agents(self, kind: str | None, active_since: datetime | None) -> list[Agent]:
        """The agents of a type that were seen since a time, most recent first."""
        passing = [
            agent
            for agent in self._coordinator.agents.values()
            if (kind is None or agent.type == kind)
            and (active_since is None or agent.last_seen_at >= active_since)
        ]
        return sorted(passing, key=lambda agent: (agent.last_seen_at, agent.id), reverse=True)


#: Seconds for accesses that are still in memory to be stored before the log is read.
FLUSH_PATIENCE = 2.0


class AccessLog:
    """Reads the access (audit) log."""

    def __init__(self, mailbox: CoordinatorMailbox, store: CoordinationStore, reading: Blocking) -> None:
        self._mailbox = mailbox
        self._store = store
        self._reading = reading

    async def entries(
        self,
        *,
        agent: str | None,
        doc: str | None,
        after: datetime | None,
        before: datetime | None = None,
        limit: int,
    ) -> list[Mapping[str, Any]]:
        """The newest `limit` entries that match the filters, newest first. Raises `DatabaseFailed`."""
        with suppress(ActorDown, ShuttingDown, trio.TooSlowError):
            await self._mailbox.ask(Flush(), within=FLUSH_PATIENCE)
        rows = await self._reading.run(
            lambda: self._store.audit(agent=agent, doc=doc, after=after, before=before, limit=limit)
        )
        return [audit_record(row) for row in rows]


def audit_record(row: tuple[int | str, ...]) -> Mapping[str, Any]:
    """One entry of the access log as a JSON object."""
    return dict(zip(("id", "agent_id", "doc_id", "operation", "timestamp"), row, strict=True))


class NoteTitles(Protocol):
    """The titles of the notes that are there."""

    def title(self, note_id: str) -> str | None: ...


def with_titles(entries: Iterable[Mapping[str, Any]], notes: NoteTitles) -> list[Mapping[str, Any]]:
    """The entries with the `title` of each note; None for a note that is gone."""
    return [{**entry, "title": notes.title(entry["doc_id"])} for entry in entries]


log = get_logger("lithos.cursors")

#: Seconds for a cursor to be stored.
PATIENCE = 5.0


class Cursors:
    """Durable cursors of named subscribers; connections with the same name share a cursor."""

    def __init__(self, mailbox: CoordinatorMailbox, store: CoordinationStore, reading: Blocking) -> None:
        self._mailbox = mailbox
        self._store = store
        self._reading = reading
        #: Acknowledged, but not stored yet.
        self._moving: dict[str, int] = {}

    async def find(self, subscriber: str) -> int | None:
        """The cursor (seq) of a subscriber; None for a new one."""
        stored = await self._reading.run(lambda: self._store.cursor(subscriber))
        known = [seq for seq in (stored, self._moving.get(subscriber)) if seq is not None]
        return max(known, default=None)

    async def start(self, subscriber: str) -> int:
        """The cursor of a subscriber; a new one begins at the head and is stored at once.

        Raises `StorageFailed`.
        """
        found = await self.find(subscriber)
        if found is not None:
            self._mailbox.nudge(MoveCursor(subscriber, found))  # it is in use: cursors idle for a year go
            return found
        try:
            return await self._mailbox.ask(MoveCursor(subscriber), within=PATIENCE)
        except (ActorDown, ShuttingDown, trio.TooSlowError) as failure:
            raise StorageFailed(
                f"The cursor of {subscriber!r} could not be stored. Retry in a moment."
            ) from failure

    def acknowledge(self, subscriber: str, seq: int) -> None:
        """Everything up to `seq` is processed: `find` knows it from now on, `store` makes it durable."""
        self._moving[subscriber] = max(seq, self._moving.get(subscriber, seq))

    async def store(self, subscriber: str) -> None:
        """Make acknowledgements durable; a failure is logged, and later events are delivered again.

        A cancelled call forgets nothing: the next one stores it.
        """
        seq = self._moving.get(subscriber)
        if seq is None:
            return
        try:
            await self._mailbox.ask(MoveCursor(subscriber, seq), within=PATIENCE)
        except (StorageFailed, ActorDown, ShuttingDown, trio.TooSlowError) as failure:
            log.warning("cursor not stored", subscriber=subscriber, seq=seq, reason=str(failure))
        if self._moving.get(subscriber) == seq:
            del self._moving[subscriber]
