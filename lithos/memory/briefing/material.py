"""The material of a briefing, and the parts of its text around the excerpts (docs/spec/context.md §1).

Usually the excerpts come before the recent activity, because they answer the question. At the start of a
session no question may be known yet. A briefing with pinned notes or open tasks therefore begins with these,
and shows what changed before the excerpts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from attrs import evolve, frozen

from lithos.memory.briefing.opening import (
    PinnedNote,
    PinnedNotes,
    pinned_text,
    without_pinned,
    work_text,
)
from lithos.memory.briefing.parts import (
    AboutNote,
    LeftOut,
    TaskPart,
    activity_text,
    decisions_text,
    sessions_text,
    task_text,
    warnings_text,
)
from lithos.memory.briefing.passages import SourceNote
from lithos.notes.model.earlier_turns import EarlierTurn
from lithos.tasks.model.open_tasks import OpenTasks
from lithos.text.snippet import Terms
from lithos.text.words.tokens import Count

#: Budget shares of the parts around the excerpts. They apply only if there are excerpts.
TASK_SHARE: Final = 0.35
WARNINGS_SHARE: Final = 0.15
ACTIVITY_SHARE: Final = 0.1
DECISIONS_SHARE: Final = 0.15
LEFT_OUT_SHARE: Final = 0.03
#: Maximum share of the budget for turns of past sessions, even without excerpts.
SESSIONS_SHARE: Final = 0.2
#: Budget shares of pinned notes, open tasks and changes at the start of a session, and the share of all parts
#: around the excerpts.
PINNED_SHARE: Final = 0.3
WORK_SHARE: Final = 0.4
CHANGES_SHARE: Final = 0.2
OPENING_SHARE: Final = 0.85
NOTES_HEAD: Final = "## Notes"


@frozen(kw_only=True, eq=False)
class Material:
    """The material of a briefing.

    `sources` are sorted best first and contain no notes that must not be shown.
    """

    task: TaskPart | None = None
    sources: Sequence[SourceNote] = ()
    terms: Terms = Terms()
    warnings: Sequence[AboutNote] = ()
    activity: Sequence[str] = ()
    #: Decisions of people about the proposals of the agent.
    decisions: Sequence[str] = ()
    #: Notes that must not be shown, whatever their text contains.
    withheld: Sequence[LeftOut] = ()
    #: Turns of past sessions that answer the question.
    sessions: Sequence[EarlierTurn] = ()
    #: Pinned notes and open tasks, if they were asked for. `is_opening` means that they were asked for.
    pinned: PinnedNotes = PinnedNotes()
    work: OpenTasks = OpenTasks()
    is_opening: bool = False
    #: Whether the sources were found with a query. If not, they are only the newest notes.
    has_query: bool = True

    @property
    def has_news(self) -> bool:
        """Return whether there is anything to show."""
        parts = (self.task, self.sources, self.warnings, self.activity, self.decisions, self.sessions)
        return any(parts) or bool(self.pinned or self.work)


@frozen(kw_only=True)
class Around:
    """The texts around the excerpts. An empty text is left out."""

    task: str = ""
    warnings: str = ""
    activity: str = ""
    sessions: str = ""
    pinned: str = ""
    work: str = ""
    is_opening: bool = False
    #: The notes that `pinned` shows.
    shown: Sequence[PinnedNote] = ()

    def unrepeated(self, material: Material) -> Material:
        """Return the material without the text that these texts already show."""
        if not self.shown:
            return material
        sources = without_pinned(material.sources, self.shown, has_query=material.has_query)
        return evolve(material, sources=sources)

    @property
    def texts(self) -> list[str]:
        """Return the texts that are not empty."""
        return list(
            filter(None, (self.task, self.pinned, self.work, self.warnings, self.activity, self.sessions))
        )

    def assemble(self, blocks: Sequence[str], left_out: str) -> str:
        """Return the whole text with the excerpts in `blocks`."""
        notes = "\n\n".join([NOTES_HEAD, *blocks]) if blocks else ""
        parts = [self.task, self.warnings, notes, self.sessions, self.activity]
        if self.is_opening:
            parts = [*self.texts, notes]
        return "\n\n".join(filter(None, [*parts, left_out]))

    def without_activity(self) -> Around:
        """Return the texts without the activity and the past sessions, which are the least valuable."""
        return evolve(self, activity="", sessions="")

    def shorter(self) -> Around:
        """Return the first half of the task as the only text."""
        return Around(task=self.task[: len(self.task) // 2], is_opening=self.is_opening)


def around_notes(material: Material, budget: int, count: Count) -> Around:
    """Return the texts around the excerpts, each within its share of the budget."""
    if material.is_opening:
        return _around_opening(material, budget, count)
    task = ""
    if material.task is not None:
        share = TASK_SHARE if material.sources else 1 - LEFT_OUT_SHARE - ACTIVITY_SHARE
        task = task_text(material.task, int(budget * share), count)
    return Around(
        task=task,
        warnings=_warnings(material, budget, count),
        activity=activity_text(material.activity, int(budget * ACTIVITY_SHARE), count),
        sessions=sessions_text(material.sessions, int(budget * SESSIONS_SHARE), count),
    )


def _warnings(material: Material, budget: int, count: Count) -> str:
    warnings = warnings_text(material.warnings, int(budget * WARNINGS_SHARE), count)
    if material.decisions:
        decided = decisions_text(material.decisions, int(budget * DECISIONS_SHARE), count)
        warnings = f"{decided}\n\n{warnings}".strip()
    return warnings


def _around_opening(material: Material, budget: int, count: Count) -> Around:
    """Return the texts for the start of a session. Later texts get what the earlier ones leave."""
    left = int(budget * OPENING_SHARE)

    def within(share: float, text: Callable[[int], str]) -> str:
        nonlocal left
        part = text(max(0, min(int(budget * share), left)))
        left -= count(part) + 1 if part else 0
        return part

    task, shown = material.task, list[PinnedNote]()

    def pinned(most: int) -> str:
        text, shown[:] = pinned_text(material.pinned, most, count)
        return text

    return Around(
        task="" if task is None else within(TASK_SHARE, lambda most: task_text(task, most, count)),
        pinned=within(PINNED_SHARE, pinned),
        work=within(WORK_SHARE, lambda most: work_text(material.work, most, count)),
        warnings=within(WARNINGS_SHARE, lambda most: _warnings(material, int(most / WARNINGS_SHARE), count)),
        activity=within(CHANGES_SHARE, lambda most: activity_text(material.activity, most, count)),
        is_opening=True,
        shown=shown,
    )
