"""Unexpired claims with the titles of their tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial

from attrs import frozen

from lithos.events.journal.reading import JournalThread
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.values.events import Event
from lithos.tasks.model.task import Claim
from lithos.tasks.rows.tasks import TaskRows


@frozen
class Holding:
    """An unexpired claim, and the title of its task."""

    claim: Claim
    title: str


@frozen
class Holdings:
    """The claims that end first, and the number of all unexpired claims."""

    shown: tuple[Holding, ...]
    total: int


class Claims:
    """A read-only service for claims and task titles. Raises `DatabaseFailed`."""

    def __init__(self, journal: CoordinationStore, reading: JournalThread) -> None:
        self._rows = journal.rows(TaskRows)
        self._reading = reading

    async def task_titles(self, events: Iterable[Event]) -> dict[str, str]:
        """Return the titles of the tasks that the events are about, by task id."""
        ids = sorted(set(_task_ids(events)))
        return await self._reading.run(partial(self._rows.titles, ids)) if ids else {}

    async def holdings(self, now: datetime, most: int) -> Holdings:
        """Return the unexpired claims that end first, and the number of all unexpired claims."""

        def read() -> Holdings:
            claims = [claim for group in self._rows.active_claims(now).values() for claim in group]
            first = sorted(claims, key=lambda claim: (claim.expires_at, claim.fence))[:most]
            titles = self._rows.titles(sorted({claim.task_id for claim in first}))
            shown = tuple(Holding(claim, titles.get(claim.task_id, "")) for claim in first)
            return Holdings(shown, len(claims))

        return await self._reading.run(read)


def _task_ids(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        task_id = event.draft.payload.get("task_id")
        if isinstance(task_id, str):
            yield task_id
