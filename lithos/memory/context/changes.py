"""Changes after a position in the journal, and recent activity.

Changes and recent activity are also returned as lines of a briefing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from lithos.events.reading.event_stream import parse_position
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.actors.threads import Blocking
from lithos.kernel.values.events import (
    ENRICHMENT,
    NOTE_CREATED,
    NOTE_DELETED,
    NOTE_RENAMED,
    NOTE_UPDATED,
    Event,
)
from lithos.kernel.values.principals import SCAN_AGENT
from lithos.kernel.values.times import format_time
from lithos.memory.briefing.parts import PATH_SHOWN, one_line
from lithos.notes.catalogue.catalogue import Entry
from lithos.tasks.model.task import Task
from lithos.text.snippet import Terms, first_places
from lithos.text.words.analysis import fold

#: Maximum number of lines in each list.
MOST: Final = 12
#: A task or finding counts as related if it has at least this share of the query's weight.
_CONCERNS: Final = 0.3
_TITLE: Final = 100
#: Outcomes of proposals, in the words of a briefing.
_DECIDED: Final[Mapping[str, str]] = {
    "proposal.approved": "was approved", "proposal.rejected": "was rejected",
    "proposal.expired": "expired without review",
}  # fmt: skip
#: Events that change whether a task is open.
_ENDED: Final = ("task.completed", "task.cancelled", "task.failed", "task.reopened")
#: Note events and their verbs. Changes that the server finds at its start do not count as activity of an
#: agent.
_NOTES: Final[Mapping[str, str]] = {
    NOTE_CREATED: "created", NOTE_UPDATED: "updated", NOTE_RENAMED: "moved",
}  # fmt: skip


@frozen(kw_only=True)
class ActivityFilter:
    """The events that a briefing mentions.

    `note` returns the note of an event if it was found and may be shown. `tasks` contains the tasks that may
    be mentioned, or is None if all may. If there is no query, `terms` is None, and all these tasks count.
    With `has_work`, the briefing lists the open tasks anyway.
    """

    terms: Terms | None
    note: Callable[[str], Entry | None]
    task_id: str | None = None
    tasks: Mapping[str, Task] | None = None
    has_work: bool = False

    def concerns(self, text: Any) -> bool:
        """Return whether the text of a task or finding is related to the query."""
        return self.terms is None or _concerns(text, self.terms)


def tell_activity(events: Iterable[Event], wanted: ActivityFilter) -> list[str]:
    """Return one line per event, newest event first, and at most one line per note.

    Findings and claims of the task itself are left out, because the task part shows them.
    """
    lines: list[str] = []
    told: set[str] = set()
    for event in reversed(list(events)):
        for key, text in _tell(event, wanted):
            if key not in told:
                told.add(key)
                lines.append(f"{format_time(event.draft.timestamp)[:16]}Z {text}")
        if len(lines) >= MOST:
            break
    return lines[:MOST]


def tell_decisions(
    events: Sequence[Event], agent_id: str | None, is_shown: Callable[[str], bool] | None = None
) -> list[str]:
    """Return the outcomes of an agent's proposals, newest first, with the deciding person and reason.

    `is_shown` returns whether the note at a path may be mentioned. None means that all notes may.
    """
    lines: list[str] = []
    for event in reversed(events):
        payload, what = event.draft.payload, event.draft.type
        if what not in _DECIDED or payload.get("agent") != agent_id:
            continue
        if is_shown is not None and not is_shown(str(payload["path"])):
            continue
        told = f"{payload['kind']} of {one_line(str(payload['path']), _TITLE)} {_DECIDED[what]}"
        if payload.get("by"):
            told += f" by {one_line(str(payload['by']), 80)}"
        if payload.get("reason"):
            told += f": {one_line(str(payload['reason']), 300)}"
        lines.append(f"{format_time(event.draft.timestamp)[:16]}Z {told}")
        if len(lines) >= MOST:
            break
    return lines


def _tell(event: Event, wanted: ActivityFilter) -> Iterator[tuple[str, str]]:
    draft = event.draft
    payload, agent = draft.payload, one_line(draft.agent, 80)
    if is_of_note(event):
        note_id = str(payload.get("id"))
        entry = wanted.note(note_id)
        if entry is not None and draft.type in _NOTES and draft.agent != SCAN_AGENT:
            title = one_line(entry.note.title, _TITLE)
            place = f"id={note_id}" if wanted.terms is not None else one_line(entry.path, PATH_SHOWN)
            yield note_id, f"note {_NOTES[draft.type]} by {agent}: {title} (`{place}`)"
        return
    about = str(payload.get("task_id", ""))
    if not about:
        return
    key = f"{draft.type}:{about}"
    if about == wanted.task_id:
        if draft.type in _ENDED:
            yield key, f"this task {draft.type.partition('.')[2]} by {agent}"
    elif wanted.tasks is not None and about not in wanted.tasks:
        return
    elif draft.type == "task.created" and not wanted.has_work and wanted.concerns(payload.get("title")):
        yield key, f"task created by {agent}: {one_line(str(payload['title']), _TITLE)} (`task_id={about}`)"
    elif draft.type == "finding.posted" and wanted.concerns(payload.get("summary")):
        finding = one_line(str(payload["summary"]), 200)
        yield str(payload.get("finding_id")), f"finding by {agent}: {finding} (`task_id={about}`)"
    elif draft.type in _ENDED and wanted.terms is None and wanted.tasks is not None:
        title = one_line(wanted.tasks[about].title, _TITLE)
        yield key, f"task {draft.type.partition('.')[2]} by {agent}: {title}"


def task_ids(events: Iterable[Event]) -> frozenset[str]:
    """Return the ids of the tasks that events are about."""
    found = (event.draft.payload.get("task_id") for event in events if not is_of_note(event))
    return frozenset(task_id for task_id in found if isinstance(task_id, str))


def _concerns(text: Any, terms: Terms) -> bool:
    if not isinstance(text, str) or not terms.total:
        return False
    found = first_places(fold(text[:1_000]), terms)
    return sum(terms.terms[number].weight for number in found) >= _CONCERNS * terms.total


#: Maximum number of events to read. If there are more events, everything counts as changed.
MOST_EVENTS: Final = 20_000
#: Number of newest journal events to read for the recent activity.
RECENT: Final = 300
NOTE_EVENTS: Final = frozenset((NOTE_CREATED, NOTE_UPDATED, NOTE_DELETED, NOTE_RENAMED))


@frozen(kw_only=True)
class Changed:
    """The events after a position, oldest first. If they are unavailable, `trouble` is the reason."""

    events: Sequence[Event]
    trouble: str | None = None

    @property
    def notes(self) -> frozenset[str]:
        """Return the changed notes. Notes in which enrichment only completed the frontmatter are left out."""
        return frozenset(str(event.draft.payload.get("id")) for event in self.events if is_of_note(event))

    def notes_by_enrichment(self) -> frozenset[str]:
        """Return the notes that enrichment wrote. They are relevant if enrichment quarantined them."""
        return frozenset(
            str(event.draft.payload.get("id"))
            for event in self.events
            if event.draft.type in NOTE_EVENTS and _is_enrichment(event)
        )


def is_of_note(event: Event) -> bool:
    """Return whether an event creates, changes, moves or deletes a note."""
    return event.draft.type in NOTE_EVENTS and not _is_enrichment(event)


def _is_enrichment(event: Event) -> bool:
    return event.draft.origin.partition(":")[0] == ENRICHMENT


class JournalChanges:
    """A reader for changes in the journal."""

    def __init__(self, journal: CoordinationStore, reading: Blocking) -> None:
        self._journal = journal
        self._reading = reading

    async def after(self, cursor: str) -> Changed:
        """Return the events after a cursor. If everything counts as new, return the reason instead."""
        seq, journal = parse_position(cursor), self._journal
        if seq is None:
            return Changed(events=(), trouble="since is not a cursor of an earlier answer")

        def look() -> list[Event] | None:
            return journal.events_after(seq, MOST_EVENTS + 1) if journal.knows_position(seq) else None

        events = await self._reading.run(look)
        if events is None:
            return Changed(
                events=(), trouble="the cursor is older than the journal or belongs to another journal"
            )
        if len(events) > MOST_EVENTS:
            return Changed(
                events=(), trouble=f"more than {MOST_EVENTS:,} events have happened since the cursor"
            )
        return Changed(events=events)

    async def recent(self) -> Sequence[Event]:
        """Return the newest events in chronological order."""
        journal = self._journal
        return () if journal is None else await self._reading.run(lambda: journal.newest_events(RECENT))
