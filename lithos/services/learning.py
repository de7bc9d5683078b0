"""What retrieval has learned: read it here, change it through the memory actor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import attrs

from lithos.actors.blocking import Blocking
from lithos.actors.memory import MemoryMailbox
from lithos.core.memory import (
    Decay,
    LearningCommand,
    NodeStats,
    ProjectionOutcome,
    ProjectProvenance,
    Receipt,
    SalienceSummary,
    WorkingNode,
)
from lithos.services.outcomes import honest_outcome
from lithos.stores.stats import StatsStore, StatsTables
from lithos.stores.stats_receipts import OldReceipt

T = TypeVar("T")

LEARNING_DEADLINE = 30.0
#: Notes per command of what concerns all of them: some 25 ms of the memory actor.
SLICE = 500


class Learning:
    """Reads over the second connection of `stats.db`; they raise `DatabaseFailed` when it is broken."""

    def __init__(self, mailbox: MemoryMailbox, store: StatsStore, reading: Blocking) -> None:
        self._mailbox = mailbox
        self._store = store
        #: One thread for the one read connection of the statistics.
        self._reading = reading

    async def stats(self, node_ids: Iterable[str]) -> dict[str, NodeStats]:
        """The statistics of these notes, where there are any; others have the defaults of `NodeStats`."""
        wanted = list(node_ids)
        return await self._read(lambda tables: tables.nodes.get(wanted))

    async def all_stats(self) -> list[NodeStats]:
        """All stored statistics, by note id."""
        return await self._read(lambda tables: tables.nodes.all())

    async def summary(self, floor: float) -> SalienceSummary:
        """How all notes stand; `floor` is a salience."""
        return await self._read(lambda tables: tables.nodes.summarize(floor))

    async def coactivated(self, seeds: Sequence[str], namespaces: Sequence[str] | None) -> dict[str, int]:
        """How often other notes were retrieved together with the seeds; None is any namespace."""
        return await self._read(lambda tables: tables.nodes.companions(seeds, namespaces))

    async def receipt(self, receipt_id: str) -> Receipt | None:
        """One receipt."""
        return await self._read(lambda tables: tables.receipts.get(receipt_id))

    async def newest_receipt(self, task_id: str, agent_id: str) -> Receipt | None:
        """The latest receipt of an agent's retrievals for a task."""
        return await self._read(lambda tables: tables.receipts.newest(task_id, agent_id))

    async def receipt_count(self) -> int:
        """How many receipts there are."""
        return await self._read(lambda tables: tables.receipts.count())

    async def oldest_receipts(self, after: int, most: int) -> list[OldReceipt]:
        """At most so many receipts behind a place, oldest first."""
        return await self._read(lambda tables: tables.receipts.oldest(after, most))

    async def working_memory(self, task_id: str) -> list[WorkingNode]:
        """The notes that were retrieved for a task, by id."""
        return await self._read(lambda tables: tables.receipts.working_memory(task_id))

    async def working_tasks(self) -> list[str]:
        """The tasks that have working memory."""
        return await self._read(lambda tables: tables.receipts.working_tasks())

    async def spent(self, day: str) -> tuple[int, int]:
        """Tokens and calls of a language model on a UTC day (`YYYY-MM-DD`)."""
        return await self._read(lambda tables: tables.ledgers.spent(day))

    async def is_inferred(self, node_id: str, doc_version: int, inference_version: str) -> bool:
        """Whether a version of a note was judged under this policy already."""
        return await self._read(
            lambda tables: tables.ledgers.is_inferred(node_id, doc_version, inference_version)
        )

    async def entities_digest(self, node_id: str) -> str | None:
        """The digest of the entities that were extracted last for a note."""
        return await self._read(lambda tables: tables.ledgers.entities_digest(node_id))

    async def applied_lessons(self) -> list[str]:
        """The lessons that were applied and not forgotten."""
        return await self._read(lambda tables: tables.ledgers.lessons())

    async def queue_length(self) -> int:
        """How many triggers are not processed, those given up included."""
        return await self._read(lambda tables: tables.queue.length())

    async def submit(self, command: LearningCommand) -> Any:
        """Have a command carried out, durably; its reply. Raises the refusal, or `StorageFailed`.

        What concerns all notes is done slice by slice, so that no retrieval waits long for its receipt.
        """
        if isinstance(command, Decay) and command.node_ids is None:
            return await self._decay_all()
        if isinstance(command, ProjectProvenance) and command.complete:
            return await self._project_all(command)
        return await self._ask(command)

    async def _decay_all(self) -> int:
        faded, some = 0, await self._some_ids("")
        while some:
            faded += await self._ask(Decay(tuple(some)))
            some = await self._some_ids(some[-1])
        return faded

    async def _some_ids(self, after: str) -> list[str]:
        return await self._read(lambda tables: tables.nodes.ids(after, SLICE))

    async def _project_all(self, command: ProjectProvenance) -> ProjectionOutcome:
        """Reconcile slices of notes, then remove what is left of all others."""
        total, notes = ProjectionOutcome(), list(command.desired.items())
        for begin in range(0, len(notes), SLICE):
            some = dict(notes[begin : begin + SLICE])
            total += await self._ask(attrs.evolve(command, desired=some, complete=False))
        kept = command.kept | command.desired.keys()
        rest: ProjectionOutcome = await self._ask(attrs.evolve(command, desired={}, kept=kept))
        return total + rest

    async def _ask(self, command: LearningCommand) -> Any:
        with honest_outcome("Look at the statistics again before you retry."):
            return await self._mailbox.ask(command, within=LEARNING_DEADLINE)

    async def _read(self, query: Callable[[StatsTables], T]) -> T:
        def look() -> T:
            with self._store.noticing_damage():
                return query(self._store.reading)  # looked up here: the first write replaces the tables

        return await self._reading.run(look)
