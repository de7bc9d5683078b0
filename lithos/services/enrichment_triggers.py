"""Which events ask for enrichment, and of what (memory spec, section 4)."""

from __future__ import annotations

from typing import Any, Final

from lithos.actors.catalogue import Catalogue
from lithos.core.events import (
    EDGE_UPSERTED,
    ENRICHMENT,
    NOTE_CREATED,
    NOTE_DELETED,
    NOTE_RENAMED,
    NOTE_UPDATED,
    EventDraft,
)
from lithos.core.memory import EnrichTrigger

TASK_COMPLETED: Final = "task.completed"
FINDING_POSTED: Final = "finding.posted"
#: No event: a note that a language model is to judge.
INFERENCE_DUE: Final = "inference.due"
#: What the text of a note says may have changed.
OF_CONTENT: Final = frozenset({NOTE_CREATED, NOTE_UPDATED})
#: Notes derived from it resolve anew.
OF_EXISTENCE: Final = frozenset({NOTE_CREATED, NOTE_DELETED})
_OF_NOTES: Final = frozenset({NOTE_CREATED, NOTE_UPDATED, NOTE_RENAMED, NOTE_DELETED})


def find_triggers(draft: EventDraft, catalogue: Catalogue) -> list[EnrichTrigger]:
    """What an event asks to be enriched; a note that is not there only if it was deleted.

    What enrichment itself does asks for nothing, known by its hidden origin: anybody may use the name.
    """
    if draft.origin.partition(":")[0] == ENRICHMENT:
        return []
    if draft.type == TASK_COMPLETED:
        task_id = draft.payload.get("task_id")
        return [EnrichTrigger(trigger_type=draft.type, task_id=task_id)] if task_id else []
    return [
        EnrichTrigger(trigger_type=draft.type, node_id=note_id)
        for note_id in _notes(draft, catalogue)
        if isinstance(note_id, str) and (note_id in catalogue or draft.type == NOTE_DELETED)
    ]


def _notes(draft: EventDraft, catalogue: Catalogue) -> list[Any]:
    payload = draft.payload
    if draft.type in _OF_NOTES:
        return [payload.get("id") or _id_at(payload.get("dest_path") or payload.get("path"), catalogue)]
    if draft.type == FINDING_POSTED:
        return [payload.get("knowledge_id")]
    return [payload.get("from_id"), payload.get("to_id")] if draft.type == EDGE_UPSERTED else []


def _id_at(path: object, catalogue: Catalogue) -> str | None:
    entry = catalogue.at_path(path) if isinstance(path, str) else None
    return None if entry is None else entry.note.id
