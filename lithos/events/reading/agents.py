"""Agents (registration, last seen), the access log for `/audit`, and the durable cursors of subscribers.

Specified in docs/spec/events-http.md §4 (cursors) and §6 (access log).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Protocol

import trio

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import (
    ArchiveAgent,
    ArchivedAgent,
    CoordinatorMailbox,
    Flush,
    MoveCursor,
    RegisterAgent,
    RegisteredAgent,
)
from lithos.events.model.agents import Agent
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown, honest_outcome
from lithos.kernel.actors.threads import Blocking
from lithos.kernel.log import get_logger
from lithos.kernel.values.errors import StorageFailed


class Agents:
    """Service that registers, returns and lists agents."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    async def register(
        self, agent_id: str, name: str | None, kind: str | None, metadata: Mapping[str, Any] | None
    ) -> RegisteredAgent:
        """Register an agent durably (insert or merge). An archived agent comes back."""
        message = RegisterAgent(agent_id, name, kind, metadata)
        with honest_outcome("Check with lithos_agent_info before you retry."):
            return await self._coordinator.mailbox.ask(message)

    async def archive(self, agent_id: str, by: str) -> ArchivedAgent:
        """Retire an agent durably. This counts as an activity of the agent `by`, unless it retires itself.

        Raises `AgentNotFound`.
        """
        if by != agent_id:
            self._coordinator.touch(by)
        with honest_outcome("Check with lithos_agent_info before you retry."):
            return await self._coordinator.mailbox.ask(ArchiveAgent(agent_id, by))

    def get(self, agent_id: str) -> Agent | None:
        """Return an agent, or None if the id is unknown."""
        return self._coordinator.agents.get(agent_id)

    def list_agents(
        self, kind: str | None, active_since: datetime | None, *, with_archived: bool = False
    ) -> list[Agent]:
        """Return agents, the most recently seen first. Archived agents are left out unless requested.

        `kind` and `active_since` (last-seen time) are optional filters.
        """
        passing = [
            agent
            for agent in self._coordinator.agents.values()
            if (with_archived or agent.archived_at is None)
            and (kind is None or agent.type == kind)
            and (active_since is None or agent.last_seen_at >= active_since)
        ]
        return sorted(passing, key=lambda agent: (agent.last_seen_at, agent.id), reverse=True)


#: Maximum seconds to wait until buffered accesses are stored, before the access log is read.
FLUSH_PATIENCE = 2.0


class AccessLog:
    """Reader for the access (audit) log."""

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
        """Return the newest `limit` entries that match the filters, newest first. Raises `DatabaseFailed`."""
        with suppress(ActorDown, ShuttingDown, trio.TooSlowError):
            await self._mailbox.ask(Flush(), within=FLUSH_PATIENCE)
        rows = await self._reading.run(
            lambda: self._store.audit(agent=agent, doc=doc, after=after, before=before, limit=limit)
        )
        return [audit_record(row) for row in rows]


def audit_record(row: tuple[int | str | None, ...]) -> Mapping[str, Any]:
    """Return an entry of the access log as a JSON object. It has a `project` only if the call had one."""
    names = ("id", "agent_id", "doc_id", "operation", "timestamp")
    return dict(zip(names, row[:5], strict=True)) | ({"project": row[5]} if row[5] else {})


class NoteTitles(Protocol):
    """The titles of existing notes. `identify` completes the beginning of an id."""

    def title(self, note_id: str) -> str | None: ...
    def identify(self, text: str) -> str: ...


def with_titles(entries: Iterable[Mapping[str, Any]], notes: NoteTitles) -> list[Mapping[str, Any]]:
    """Return the entries, each with the `title` of its note. The title of a deleted note is None."""
    return [{**entry, "title": notes.title(entry["doc_id"])} for entry in entries]


log = get_logger("lithos.cursors")

#: Maximum seconds to wait until a cursor is stored.
PATIENCE = 5.0


class Cursors:
    """Durable cursors of named subscribers. All connections with the same name share a cursor."""

    def __init__(self, mailbox: CoordinatorMailbox, store: CoordinationStore, reading: Blocking) -> None:
        self._mailbox = mailbox
        self._store = store
        self._reading = reading
        #: Acknowledged positions that are not stored yet, by subscriber.
        self._moving: dict[str, int] = {}

    async def find(self, subscriber: str) -> int | None:
        """Return the cursor (seq) of a subscriber, or None for a new subscriber."""
        stored = await self._reading.run(lambda: self._store.cursor(subscriber))
        known = [seq for seq in (stored, self._moving.get(subscriber)) if seq is not None]
        return max(known, default=None)

    async def start(self, subscriber: str) -> int:
        """Return the cursor of a subscriber. A new cursor starts at the head and is stored immediately.

        Raises `StorageFailed` if a new cursor cannot be stored.
        """
        found = await self.find(subscriber)
        if found is not None:
            # Storing the cursor again marks it as used. Unused cursors are deleted after a year.
            self._mailbox.nudge(MoveCursor(subscriber, found))
            return found
        try:
            return await self._mailbox.ask(MoveCursor(subscriber), within=PATIENCE)
        except (ActorDown, ShuttingDown, trio.TooSlowError) as failure:
            raise StorageFailed(
                f"The cursor of {subscriber!r} could not be stored. Retry in a moment."
            ) from failure

    def acknowledge(self, subscriber: str, seq: int) -> None:
        """Record that a subscriber has processed all events up to `seq`.

        After this call, `find` returns the new position. `store` makes the position durable.
        """
        self._moving[subscriber] = max(seq, self._moving.get(subscriber, seq))

    async def store(self, subscriber: str) -> None:
        """Make the acknowledgements of a subscriber durable.

        A failure is only logged. The server may then deliver events again.

        If a call of `store` is cancelled, the next call stores the position.
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
