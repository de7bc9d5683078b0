"""The usage of notes by agents, counted for each agent and day (docs/spec/copies.md §6).

Only stored data is counted: receipts of retrievals and briefings, citations of completed tasks, and note
accesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import Final

import attrs
from attrs import define, field, frozen

from lithos.memory.model.memory import RetrievalRecord
from lithos.tasks.model.task import Citation

#: Number of first results. A repeated question counts as found again if one of these results is a note that
#: was cited for it before.
FIRST: Final = 3


@frozen(kw_only=True)
class Counts:
    """Counts of the activity of one agent on one day. Sums over several agents or days have the same fields.

    `tokens` are the tokens of briefings. `notes_cited` counts the notes that completed tasks of the agent
    cited. `taken_over` counts those notes that another agent wrote or posted a finding about. `asked_again`
    counts questions that an agent had asked before. For `cited_before` of these questions, an earlier task
    had cited a note. For `found_again`, this note was among the first three results. For `found_nothing`,
    there was no result.
    """

    briefings: int = 0
    retrievals: int = 0
    searches: int = 0
    tokens: int = 0
    notes_read: int = 0
    notes_cited: int = 0
    taken_over: int = 0
    asked_again: int = 0
    cited_before: int = 0
    found_again: int = 0
    found_nothing: int = 0

    def __add__(self, other: Counts) -> Counts:
        mine, theirs = attrs.astuple(self), attrs.astuple(other)
        return Counts(**{name: a + b for name, a, b in zip(COUNTED, mine, theirs, strict=True)})


COUNTED: Final = tuple(each.name for each in attrs.fields(Counts))
NOTHING: Final = Counts()


@define
class Tally:
    """Counts of events by day (UTC) and agent. Only questions (`ask`) must be added in order of time."""

    since: date
    #: Time of each citation, by task and by note.
    _cited: dict[str, dict[str, datetime]] = field(factory=dict)
    #: Pairs of task and result for each question. The task asked the question and cited the result.
    _asked: dict[str, set[tuple[str, str]]] = field(factory=dict)
    counts: dict[tuple[date, str], Counts] = field(factory=dict, init=False)

    def add(self, day: date, agent: str, counts: Counts) -> None:
        """Add to the counts of a day, unless the day is before `since`."""
        if day >= self.since and counts != NOTHING:
            self.counts[day, agent] = self.counts.get((day, agent), NOTHING) + counts

    def cite(self, citation: Citation, *, taken_over: bool) -> None:
        """Count a citation. All citations must be counted before the first question."""
        self._cited.setdefault(citation.task_id, {})[citation.note_id] = citation.at
        self.add(citation.at.date(), citation.agent, Counts(notes_cited=1, taken_over=int(taken_over)))

    def ask(self, asked: Iterable[RetrievalRecord]) -> None:
        """Count questions.

        The questions must be passed in the order in which they were asked, from the first known question.
        """
        for each in asked:
            is_briefing = each.tokens is not None
            counts = Counts(
                briefings=int(is_briefing), retrievals=int(not is_briefing), tokens=each.tokens or 0
            )
            if not each.is_followup:
                counts += self._repeat(each)
            self.add(each.at.date(), each.agent, counts)

    def _repeat(self, asked: RetrievalRecord) -> Counts:
        """Return the counts for a question that was asked before. The question is also remembered."""
        before = self._asked.get(asked.question)
        cited = self._cited.get(asked.task_id or "", {})
        mine = {(asked.task_id or "", note) for note in asked.notes if note in cited}
        self._asked[asked.question] = mine if before is None else before | mine
        if before is None:
            return NOTHING
        known = {note for task, note in before if self._cited[task][note] <= asked.at}
        return Counts(
            asked_again=1,
            cited_before=int(bool(known)),
            found_again=int(not known.isdisjoint(asked.notes[:FIRST])),
            found_nothing=int(not asked.notes),
        )


@frozen(kw_only=True)
class Worth:
    """The counts of a period by day and agent, newest day first, and the sum of all counts."""

    since: date
    until: date
    rows: tuple[tuple[date, str, Counts], ...]

    @property
    def total(self) -> Counts:
        """The sum of all counts."""
        return _sum(counts for _, _, counts in self.rows)

    def by_agent(self) -> Mapping[str, Counts]:
        """Return the sum of counts for each agent.

        Agents with the most searches and retrievals come first.
        """
        found: dict[str, list[Counts]] = {}
        for _, agent, counts in self.rows:
            found.setdefault(agent, []).append(counts)
        sums = {agent: _sum(several) for agent, several in found.items()}
        return dict(sorted(sums.items(), key=lambda each: (-_shown(each[1]), each[0])))


def _sum(several: Iterable[Counts]) -> Counts:
    total = NOTHING
    for each in several:
        total += each
    return total


def _shown(counts: Counts) -> int:
    return counts.briefings + counts.retrievals + counts.searches


def ordered(counts: Mapping[tuple[date, str], Counts]) -> Iterator[tuple[date, str, Counts]]:
    """Yield the counts by day, newest first, and within a day by agent name."""
    for day, agent in sorted(counts, key=lambda each: (-each[0].toordinal(), each[1])):
        yield day, agent, counts[day, agent]
