"""Counts that show how useful the notes were to agents, from stored data (docs/spec/copies.md §6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Final

import trio
from attrs import define, field

from lithos.events.journal.coordinator import Coordinator
from lithos.events.journal.messages import Flush
from lithos.events.journal.reading import JournalThread
from lithos.events.reading.agents import FLUSH_PATIENCE
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.mailboxes import ActorDown, ShuttingDown
from lithos.kernel.actors.shared_value import Shared
from lithos.kernel.parts import Clock
from lithos.kernel.values.principals import UNKNOWN_AGENT, is_reserved
from lithos.memory.model.memory import RetrievalRecord
from lithos.memory.retrieve.feedback import Learning
from lithos.memory.rows.stats import StatsTables
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.tasks.model.task import Citation
from lithos.tasks.rows.tasks import TaskRows
from lithos.upkeep.model.worth import Counts, Tally, Worth, ordered

#: Default and maximum number of days to count.
DAYS: Final = 7
MOST_DAYS: Final = 366
#: Number of rows to read at once. The reading thread needs about 20 ms for them.
PAGE: Final = 1_000
#: Maximum age of the counts on the overview: `AGE` seconds, or `AGE_TIMES` times the duration of the count if
#: that is longer.
AGE, AGE_TIMES = 60.0, 100.0


@define(eq=False)
class WorthCounter:
    """A counter of note reads, searches and citations.

    The counter counts only on request and raises `DatabaseFailed`.
    """

    _journal: CoordinationStore
    _catalogue: Catalogue
    _reading: JournalThread
    _coordinator: Coordinator
    _clock: Clock
    _learning: Learning
    _turn: trio.Lock = field(factory=trio.Lock, init=False)
    #: Counts of the last `DAYS` days. They are at most a minute old, or older if counting takes long.
    shared: Shared[Worth] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.shared = Shared(lambda: self.count(DAYS), AGE, AGE_TIMES)

    async def count(self, days: int) -> Worth:
        """Return the current counts of the last `days` days, including today."""
        async with self._turn:
            return await self._count(max(1, min(days, MOST_DAYS)))

    async def _count(self, days: int) -> Worth:
        with suppress(ActorDown, ShuttingDown, trio.TooSlowError):
            await self._coordinator.mailbox.ask(Flush(), within=FLUSH_PATIENCE)
        today = self._clock().astimezone(UTC).date()
        tally = Tally(today - timedelta(days=days - 1))
        await self._add_accesses(tally, today)
        await self._add_citations(tally)
        await self._add_questions(tally)
        rows = tuple(each for each in ordered(tally.counts) if not is_reserved(each[1]))
        return Worth(since=tally.since, until=today, rows=rows)

    async def _add_accesses(self, tally: Tally, today: date) -> None:
        store, reading = self._journal, self._reading
        day = tally.since
        while day <= today:
            begin = datetime.combine(day, time(), UTC)
            end = begin + timedelta(days=1)
            for agent, read, searches in await reading.run(partial(store.accessed, begin, end)):
                tally.add(day, agent, Counts(notes_read=read, searches=searches))
            day += timedelta(days=1)

    async def _add_citations(self, tally: Tally) -> None:
        rows = self._journal.rows(TaskRows).impact
        reading = self._reading
        agents = self._coordinator.agents
        is_other = _others_work(self._catalogue, agents)
        place = ("", "")
        while True:
            at = place
            some, place = await reading.run(partial(rows.citations, at, PAGE))
            if not some:
                return
            lately = {each.note_id for each in some if each.at.date() >= tally.since}
            posted = await reading.run(partial(rows.posters, lately)) if lately else {}
            for each in some:
                tally.cite(each, taken_over=is_other(each, posted.get(each.note_id, {})))

    async def _add_questions(self, tally: Tally) -> None:
        place = 0
        while True:
            at = place
            some, place = await self._learning.read(partial(_asked_behind, at))
            if place == at:
                return
            tally.ask(some)
            await trio.lowlevel.checkpoint()


def _asked_behind(place: int, tables: StatsTables) -> tuple[list[RetrievalRecord], int]:
    return tables.receipts.asked(place, PAGE)


def _others_work(
    catalogue: Catalogue, agents: Mapping[str, object]
) -> Callable[[Citation, Mapping[str, datetime]], bool]:
    """Return a function that recognises citations of work by other agents.

    The cited note counts if another agent wrote it, or if another agent posted a finding about it before the
    citation.
    """

    def is_other(citation: Citation, posted: Mapping[str, datetime]) -> bool:
        entry = catalogue.get(citation.note_id)
        others = {agent for agent, at in posted.items() if at <= citation.at}
        if entry is not None and entry.note.author in agents:
            others.add(entry.note.author)
        others -= {citation.agent, UNKNOWN_AGENT}
        return any(not is_reserved(each) for each in others)

    return is_other
