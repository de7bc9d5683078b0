"""Typed edges between notes: change, list, and settle contradictions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from lithos.actors.blocking import Blocking
from lithos.actors.catalogue import Catalogue
from lithos.actors.coordinator import Coordinator
from lithos.actors.memory import MemoryMailbox
from lithos.actors.requests import PatchNote
from lithos.core.edges import (
    SUPERSEDED,
    Edge,
    EdgeCommand,
    EdgeFilter,
    ResolveConflict,
    UpsertEdge,
    other_end,
)
from lithos.core.errors import LithosError, NoteNotFound, StorageFailed
from lithos.services.knowledge import Knowledge
from lithos.services.outcomes import honest_outcome
from lithos.stores.edges import EdgeStore

EDGE_DEADLINE = 30.0


class Edges:
    """The use cases around typed edges."""

    def __init__(
        self,
        mailbox: MemoryMailbox,
        store: EdgeStore,
        reading: Blocking,
        coordinator: Coordinator,
        knowledge: Knowledge,
        catalogue: Catalogue,
    ) -> None:
        self._mailbox = mailbox
        self._store = store
        #: One thread for the one read connection of the edges.
        self._reading = reading
        self._coordinator = coordinator
        self._knowledge = knowledge
        self._catalogue = catalogue

    async def upsert(self, command: UpsertEdge) -> Edge:
        """Make or overwrite an edge; returns once it is durable and its event journalled."""
        self._coordinator.touch(command.agent)
        edge: Edge = await self._submit(command)
        return edge

    async def list_edges(self, wanted: EdgeFilter) -> list[Edge]:
        """The edges that pass, oldest first."""
        return await self._reading.run(lambda: self._store.edges(wanted))

    async def touching(self, note_ids: Collection[str]) -> list[Edge]:
        """The edges that leave or reach any of these notes, each once, oldest first."""
        return await self._reading.run(lambda: self._store.edges_touching(note_ids)) if note_ids else []

    async def resolve(self, command: ResolveConflict) -> tuple[Edge, tuple[str, ...]]:
        """Settle a contradiction; the edge and warnings.

        The winner of a superseded one learns whom it supersedes. Raises `NotFound`, `InvalidInput`,
        `UpdateFailed`, and `StorageFailed` when only the edge could be changed.
        """
        edge: Edge = await self._submit(command)
        if command.resolution != SUPERSEDED or command.winner_id is None:
            return edge, ()
        return edge, await self._crown(
            command.winner_id, other_end(edge, command.winner_id), command.resolver
        )

    async def _crown(self, winner: str, loser: str, resolver: str) -> tuple[str, ...]:
        """Let the winner note say whom it supersedes; what there is to warn of."""
        missing = f"The edge is resolved, but no note {winner!r} is there to supersede {loser!r}."
        if winner not in self._catalogue:
            return (missing,)
        try:
            await self._knowledge.patch(PatchNote(id=winner, agent=resolver, supersedes=loser))
        except NoteNotFound:
            return (missing,)
        except LithosError as refusal:
            raise StorageFailed(
                f"The edge is resolved, but the winner note does not say yet that it supersedes {loser!r}: "
                f"{refusal.message} Then repeat this call."
            ) from refusal
        return ()

    async def _submit(self, command: EdgeCommand) -> Any:
        with honest_outcome("List the edges again before you retry."):
            return await self._mailbox.ask(command, within=EDGE_DEADLINE)
