"""Typed edges between notes: change, list, and settle contradictions."""

from __future__ import annotations

from collections.abc import Collection

from lithos.events.journal.coordinator import Coordinator
from lithos.kernel.actors.mailboxes import honest_outcome
from lithos.kernel.actors.threads import Threads
from lithos.kernel.values.errors import Forbidden, LithosError, NoteNotFound, StorageFailed
from lithos.kernel.values.messages import R
from lithos.memory.learning.actor import Memory
from lithos.memory.rows.edges import EdgeStore
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.model.edges import (
    SUPERSEDED,
    Edge,
    EdgeCommand,
    EdgeFilter,
    ResolveConflict,
    UpsertEdge,
    other_end,
)
from lithos.notes.service.knowledge import Knowledge
from lithos.notes.writing.messages import PROPOSED, PatchNote

EDGE_DEADLINE = 30.0


class Edges:
    """The use cases around typed edges."""

    def __init__(
        self,
        store: EdgeStore,
        catalogue: Catalogue,
        coordinator: Coordinator,
        memory: Memory,
        knowledge: Knowledge,
    ) -> None:
        self._mailbox = memory.mailbox
        self._store = store
        #: One thread for the one read connection of the edges.
        self._reading = Threads()
        self._coordinator = coordinator
        self._knowledge = knowledge
        self._catalogue = catalogue

    async def upsert(self, command: UpsertEdge) -> Edge:
        """Create or overwrite a typed edge (upsert); returns once it is durable and its event journalled."""
        self._coordinator.touch(command.agent)
        return await self._submit(command)

    async def list_edges(self, *wanted: EdgeFilter) -> list[list[Edge]]:
        """The typed edges that match each filter, oldest first; all in one thread job."""
        return await self._reading.run(lambda: [self._store.edges(each) for each in wanted])

    async def find(self, edge_id: str) -> Edge | None:
        """The typed edge with an id."""
        return await self._reading.run(lambda: self._store.edge(edge_id))

    async def touching(self, note_ids: Collection[str]) -> list[Edge]:
        """The edges that leave or reach any of these notes, each once, oldest first."""
        return await self._reading.run(lambda: self._store.edges_touching(note_ids)) if note_ids else []

    async def resolve(self, command: ResolveConflict) -> tuple[Edge, tuple[str, ...]]:
        """Resolve a `contradicts` edge; returns the edge and warnings.

        With resolution `superseded` the winner's frontmatter gets `supersedes`. Raises `NotFound`,
        `InvalidInput`, `UpdateFailed`, and `StorageFailed` when only the edge could be changed.
        """
        edge = await self._submit(command)
        if command.resolution != SUPERSEDED or command.winner_id is None:
            return edge, ()
        return edge, await self._crown(
            command.winner_id, other_end(edge, command.winner_id), command.resolver
        )

    async def _crown(self, winner: str, loser: str, resolver: str) -> tuple[str, ...]:
        """Set `supersedes` in the winner's frontmatter; returns warnings."""
        missing = f"The edge is resolved, but no note {winner!r} is there to supersede {loser!r}."
        if winner not in self._catalogue:
            return (missing,)
        try:
            outcome = await self._knowledge.write(PatchNote(id=winner, agent=resolver, supersedes=loser))
        except NoteNotFound:
            return (missing,)
        except Forbidden as refusal:
            return (
                f"The edge is resolved, but the winner does not say that it supersedes: {refusal.message}",
            )
        except LithosError as refusal:
            raise StorageFailed(
                f"The edge is resolved, but the winner note does not say yet that it supersedes {loser!r}: "
                f"{refusal.message} Then repeat this call."
            ) from refusal
        if outcome.status == PROPOSED:
            return (
                "The edge is resolved; that the winner supersedes the other waits for a person, as "
                f"{outcome.proposal_id}.",
            )
        return ()

    async def _submit(self, command: EdgeCommand[R]) -> R:
        with honest_outcome("List the edges again before you retry."):
            return await self._mailbox.ask(command, within=EDGE_DEADLINE)
