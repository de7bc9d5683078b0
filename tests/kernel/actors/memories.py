"""The memory and the coordinator with real files. Tests can make their transactions fail."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from functools import partial

import apsw
import trio

from lithos.events.journal.broadcaster import Broadcaster
from lithos.events.journal.coordinator import Coordinator
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.mailboxes import ActorDown, supervise
from lithos.kernel.actors.threads import Inline
from lithos.memory.learning.actor import Memory
from lithos.memory.model.memory import FinalNode, NodeStats, Receipt, RecordRetrieval
from lithos.memory.rows.edges import EdgeStore
from lithos.memory.rows.stats import StatsStore
from lithos.notes.model.edges import EdgeFilter, UpsertEdge
from tests.fakes import START, Clock, Gate, Killed
from tests.kernel.actors.desks import Switch, all_boards


class Desk:
    """The memory and the coordinator with real files. `reopen` simulates the next process."""

    def __init__(self, root, **settings) -> None:
        self.root = root
        self.settings = {"journal_size": 1000} | settings
        self.clock = Clock()
        self._ids = 0
        self.open()

    def open(self) -> None:
        self.journal = CoordinationStore.open(self.root / "coordination.db", START)
        self.edges = EdgeStore.open(self.root / "edges.db", START)
        self.stats = StatsStore.open(self.root / "stats.db", START)
        self.journal_switch, self.edges_switch = Switch(self.journal), Switch(self.edges)
        self.stats_switch = Switch(self.stats)
        self.coordinator = Coordinator(
            self.journal,
            all_boards(self.journal),
            Inline(),
            Broadcaster(1000, 1000),
            self.clock,
            **self.settings,
        )
        self.gate = Gate()
        self.memory = Memory(
            self.edges,
            self.stats,
            self.gate,
            self.coordinator,
            self.journal,
            Inline(),
            self.clock,
            new_edge_id=self._id,
        )
        self.ask = self.memory.mailbox.ask

    def _id(self) -> str:
        self._ids += 1
        return f"edge_{self._ids:012}"

    def reopen(self) -> None:
        self.close()
        self.open()

    def close(self) -> None:
        self.edges.close()
        self.stats.close()
        self.journal.close()

    @asynccontextmanager
    async def running(self):
        """Run the actors, then stop them in the same way as the server does."""
        async with trio.open_nursery() as actors:
            coordinator, memory = self.coordinator.mailbox, self.memory.mailbox
            await actors.start(partial(supervise, coordinator, self.coordinator.start))
            await actors.start(partial(supervise, memory, self.memory.start, closes=[coordinator]))
            yield
            memory.close()

    @asynccontextmanager
    async def killed(self):
        """Run the actors until the body kills the process.

        After the kill, reopen all stores as the next process would.
        """
        try:
            async with self.running():
                with suppress(ActorDown):
                    yield
                await trio.sleep_forever()
        except* Killed:
            self.reopen()

    async def run(self, body=None) -> None:
        """Run the actors while `body` runs. If `body` is missing, only start and stop them."""
        async with self.running():
            if body is not None:
                await body()

    def told(self) -> list[tuple[str, str | None]]:
        """Return edge and state of every journalled event."""
        events = [event.draft for event in self.journal.events_after(0)]
        assert {event.type for event in events} <= {"edge.upserted"}
        assert len({event.origin for event in events}) == len(events)
        return [(event.payload["edge_id"], event.payload["conflict_state"]) for event in events]

    def stored(self) -> list[str]:
        return [edge.id for edge in self.edges.edges(EdgeFilter())]


FULL = apsw.FullError("database or disk is full")
EDGE = UpsertEdge(agent="ann", from_id="x", to_id="y", type="supports", weight=0.5, namespace="n")


#: The notes of a working memory, with their namespaces.
def retrieval(number: int, *notes: str, task: str | None = "t") -> RecordRetrieval:
    """Return the receipt `r<number>` of a retrieval that found these notes."""
    final = tuple(map(FinalNode, notes))
    receipt = Receipt(
        id=f"r{number}", ts=START, query="q", limit=5, task_id=task, agent_id="ann", final_nodes=final
    )
    return RecordRetrieval(receipt, notes)


def nodes(desk: Desk) -> dict[str, NodeStats]:
    """Return all statistics, by note."""
    return {stats.node_id: stats for stats in desk.stats.reading.nodes.all()}


def weights(desk: Desk) -> dict[str, float]:
    """Return the weight of every edge by its two endpoints."""
    return {edge.from_id + edge.to_id: round(edge.weight, 9) for edge in desk.edges.edges(EdgeFilter())}
