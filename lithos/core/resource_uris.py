"""Resources: their addresses, and which of them an event changes (MCP spec, section 4)."""

from __future__ import annotations

from typing import Final, Literal
from urllib.parse import quote, unquote

from attrs import frozen

from lithos.core.events import NOTE_CREATED, NOTE_DELETED, NOTE_RENAMED, NOTE_UPDATED, EventDraft

TAGS_URI: Final = "lithos://tags"
NOTE_PREFIX: Final = "lithos://note/"
TASK_PREFIX: Final = "lithos://task/"

_CHANGES_NOTE: Final = frozenset({NOTE_UPDATED, NOTE_RENAMED, NOTE_DELETED})
_CHANGES_TAGS: Final = frozenset({NOTE_CREATED, NOTE_UPDATED, NOTE_DELETED})
_CHANGES_LIST: Final = frozenset(
    {NOTE_CREATED, NOTE_DELETED, "task.created", "task.completed", "task.cancelled", "task.reopened"}
)


@frozen
class Address:
    """What a URI names; `id` is empty for the tags."""

    kind: Literal["note", "task", "tags"]
    id: str = ""

    @property
    def uri(self) -> str:
        """The one spelling under which Lithos lists the resource."""
        if self.kind == "tags":
            return TAGS_URI
        return (NOTE_PREFIX if self.kind == "note" else TASK_PREFIX) + quote(self.id, safe="")


def read_address(uri: str) -> Address | None:
    """What a URI names, in whatever way its id is percent-encoded; None if it is none of Lithos's."""
    if uri == TAGS_URI:
        return Address("tags")
    try:
        uri.encode()  # what UTF-8 cannot hold is no id
        if uri.startswith(NOTE_PREFIX) and (note_id := unquote(uri[len(NOTE_PREFIX) :], errors="strict")):
            return Address("note", note_id)
        if uri.startswith(TASK_PREFIX) and (task_id := unquote(uri[len(TASK_PREFIX) :], errors="strict")):
            return Address("task", task_id)
    except UnicodeError:
        return None
    return None


def changed_by(event: EventDraft) -> list[Address]:
    """The resources that read differently after an event."""
    changed: list[Address] = []
    if event.type in _CHANGES_NOTE and (note_id := event.payload.get("id")):
        changed.append(Address("note", note_id))
    if event.type in _CHANGES_TAGS:
        changed.append(Address("tags"))
    is_of_task = event.type.startswith("task.") or event.type == "finding.posted"
    if is_of_task and (task_id := event.payload.get("task_id")):
        changed.append(Address("task", task_id))
    return changed


def changes_list(event: EventDraft) -> bool:
    """Whether the list of resources is another one after an event."""
    return event.type in _CHANGES_LIST
