"""Recent events as lines of a briefing: about notes that were found, the task, what the query asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from lithos.catalogue.catalogue import Entry
from lithos.core.context.parts import one_line
from lithos.core.events import NOTE_CREATED, NOTE_RENAMED, NOTE_UPDATED, Event
from lithos.core.principals import SCAN_AGENT
from lithos.core.text.analysis import fold
from lithos.core.text.snippet import Terms, first_places
from lithos.core.times import format_time
from lithos.services.context.changes import is_of_note

#: Lines that are made.
MOST: Final = 12
#: Share of the query's weight from which a task or finding concerns it.
_CONCERNS: Final = 0.3
_TITLE: Final = 100
#: What the server itself found when it started is nobody's activity.
_NOTES: Final[Mapping[str, str]] = {
    NOTE_CREATED: "created", NOTE_UPDATED: "updated", NOTE_RENAMED: "moved",
}  # fmt: skip


def tell_activity(
    events: Iterable[Event], terms: Terms, note: Callable[[str], Entry | None], task_id: str | None
) -> list[str]:
    """A line per event, newest first, one per note; `note` gives the found notes that may be shown.

    What a task's own part shows, its findings and claims, is left out.
    """
    lines: list[str] = []
    told: set[str] = set()
    for event in reversed(list(events)):
        for key, text in _tell(event, terms, note, task_id):
            if key not in told:
                told.add(key)
                lines.append(f"{format_time(event.draft.timestamp)[:16]}Z {text}")
        if len(lines) >= MOST:
            break
    return lines[:MOST]


def _tell(
    event: Event, terms: Terms, note: Callable[[str], Entry | None], task_id: str | None
) -> Iterator[tuple[str, str]]:
    draft = event.draft
    payload, agent = draft.payload, one_line(draft.agent, 80)
    if is_of_note(event):
        note_id = str(payload.get("id"))
        entry = note(note_id)
        if entry is not None and draft.type in _NOTES and draft.agent != SCAN_AGENT:
            title = one_line(entry.note.title, _TITLE)
            yield note_id, f"note {_NOTES[draft.type]} by {agent}: {title} (`id={note_id}`)"
        return
    about = str(payload.get("task_id", ""))
    if not about:
        return
    key = f"{draft.type}:{about}"
    if about == task_id:
        if draft.type in ("task.completed", "task.cancelled", "task.reopened"):
            yield key, f"this task {draft.type.partition('.')[2]} by {agent}"
    elif draft.type == "task.created" and _concerns(payload.get("title"), terms):
        yield key, f"task created by {agent}: {one_line(str(payload['title']), _TITLE)} (`task_id={about}`)"
    elif draft.type == "finding.posted" and _concerns(payload.get("summary"), terms):
        finding = one_line(str(payload["summary"]), 200)
        yield str(payload.get("finding_id")), f"finding by {agent}: {finding} (`task_id={about}`)"


def _concerns(text: Any, terms: Terms) -> bool:
    if not isinstance(text, str) or not terms.total:
        return False
    found = first_places(fold(text[:1_000]), terms)
    return sum(terms.terms[number].weight for number in found) >= _CONCERNS * terms.total
