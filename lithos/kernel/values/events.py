"""Event values and their internal origins, totally ordered by `seq` (docs/spec/events-http.md §1 and §2)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from attrs import field, frozen

NOTE_CREATED: Final = "note.created"
NOTE_UPDATED: Final = "note.updated"
NOTE_DELETED: Final = "note.deleted"
NOTE_RENAMED: Final = "note.renamed"
NOTE_CONFLICT_COPY: Final = "note.conflict_copy"
AGENT_REGISTERED: Final = "agent.registered"
EDGE_UPSERTED: Final = "edge.upserted"
REINDEX_COMPLETE: Final = "reindex_complete"

#: Sources of internal origins: a tool call, an undo, and the enrich worker, which skips events that it caused
#: itself.
TOOL: Final = "tool"
TAKING_BACK: Final = "undo"
ENRICHMENT: Final = "enrichment"


@frozen(kw_only=True)
class EventDraft:
    """An event without a sequence number, before it is written to the journal.

    `origin` never leaves the process. It has the form `<source>` or `<source>:<digest>:<version>`, where the
    digest is that of the event's note file. A start scan can then see whether a change was announced, and
    which version the bytes had. For an edge the form is `<source>:<id of its outbox row>`, so that the event
    is journalled only once (idempotency key).
    """

    type: str
    agent: str
    payload: Mapping[str, Any]
    timestamp: datetime
    tags: tuple[str, ...] = ()
    origin: str = "tool"


@frozen(kw_only=True)
class Event:
    """A journalled event. The sequence number `seq` strictly increases over all event types."""

    seq: int
    draft: EventDraft
    #: Cached wire formats, each encoded once for all subscribers.
    encoded: dict[str, bytes] = field(factory=dict, eq=False, repr=False)


def event_size(event: Event) -> int:
    """Return the approximate size in bytes: 300 plus the texts of the payload and tags."""
    draft = event.draft
    texts = sum(len(value) for value in draft.payload.values() if isinstance(value, str))
    return 300 + texts + sum(map(len, draft.tags))


def note_origin(source: str, digest: str, version: int) -> str:
    """Return the origin of an event about a note file."""
    return f"{source}:{digest}:{version}"


def origin_source(origin: str) -> str:
    """Return the source that an origin contains."""
    return origin.partition(":")[0]


def origin_digest(origin: str) -> str | None:
    """Return the file digest that an origin contains, or None."""
    _, separator, rest = origin.partition(":")
    return rest.partition(":")[0] if separator else None


def origin_version(origin: str) -> int | None:
    """Return the effective version that an origin contains, or None as in older events."""
    version = origin.rpartition(":")[2] if origin.count(":") == 2 else ""
    return int(version) if version.isdecimal() else None
