"""Changes and lists of typed edges between notes, and the resolution of contradictions."""

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
    """The use cases of typed edges."""

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
        #: The thread for the only read connection to the edges.
        self._reading = Threads()
        self._coordinator = coordinator
        self._knowledge = knowledge
        self._catalogue = catalogue

    async def upsert(self, command: UpsertEdge) -> Edge:
        """Create or overwrite a typed edge.

        The call returns when the edge is durable and its event is journalled.
        """
        self._coordinator.touch(command.agent)
        return await self._submit(command)

    async def list_edges(self, *wanted: EdgeFilter) -> list[list[Edge]]:
        """Return the typed edges that pass each filter, oldest first. All filters run in one thread job."""
        return await self._reading.run(lambda: [self._store.edges(each) for each in wanted])

    async def find(self, edge_id: str) -> Edge | None:
        """Return the typed edge with this id, or None."""
        return await self._reading.run(lambda: self._store.edge(edge_id))

    async def touching(self, note_ids: Collection[str]) -> list[Edge]:
        """Return the edges that start or end at these notes, oldest first and without duplicates."""
        return await self._reading.run(lambda: self._store.edges_touching(note_ids)) if note_ids else []

    async def resolve(self, command: ResolveConflict) -> tuple[Edge, tuple[str, ...]]:
        """Resolve a `contradicts` edge. Return the edge, and warnings if there are any.

        With the resolution `superseded`, `supersedes` is set in the frontmatter of the winner. Raises
        `NotFound`, `InvalidInput` and `UpdateFailed`, and `StorageFailed` if only the edge could be changed.
        """
        edge = await self._submit(command)
        if command.resolution != SUPERSEDED or command.winner_id is None:
            return edge, ()
        return edge, await self._crown(
            command.winner_id, other_end(edge, command.winner_id), command.resolver
        )

    async def _crown(self, winner: str, loser: str, resolver: str) -> tuple[str, ...]:
        """Set `supersedes` in the frontmatter of the winner. Return warnings."""
        missing = (
            f"The edge is resolved, but note {winner!r}, which should supersede {loser!r}, does not exist."
        )
        if winner not in self._catalogue:
            return (missing,)
        try:
            outcome = await self._knowledge.write(PatchNote(id=winner, agent=resolver, supersedes=loser))
        except NoteNotFound:
            return (missing,)
        except Forbidden as refusal:
            return (
                "The edge is resolved, but the winner note was not marked as superseding the "
                f"other: {refusal.message}",
            )
        except LithosError as refusal:
            raise StorageFailed(
                "The edge is resolved, but the winner note was not marked as superseding "
                f"{loser!r}: {refusal.message} Then repeat this call."
            ) from refusal
        if outcome.status == PROPOSED:
            return (
                "The edge is resolved. The change that marks the winner as superseding the other "
                f"waits for approval as {outcome.proposal_id}.",
            )
        return ()

    async def _submit(self, command: EdgeCommand[R]) -> R:
        with honest_outcome("List the edges again before you retry."):
            return await self._mailbox.ask(command, within=EDGE_DEADLINE)
