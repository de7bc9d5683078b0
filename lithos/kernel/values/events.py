"""Event values and their internal origins.

Events are totally ordered by `seq` (docs/spec/events-http.md §1 and §2).
"""

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
NOTE_TRIMMED: Final = "note.trimmed"
AGENT_REGISTERED: Final = "agent.registered"
AGENT_ARCHIVED: Final = "agent.archived"
EDGE_UPSERTED: Final = "edge.upserted"
REINDEX_COMPLETE: Final = "reindex_complete"

#: Sources of internal origins: a tool call, an undo, and the enrich worker. The worker skips events that it
#: caused itself.
TOOL: Final = "tool"
TAKING_BACK: Final = "undo"
ENRICHMENT: Final = "enrichment"


@frozen(kw_only=True)
class EventDraft:
    """An event without a sequence number, before it is written to the journal.

    `origin` never leaves the process. It has the form `<source>` or `<source>:<digest>:<version>`, with the
    digest of the note file that the event is about. The digest shows a scan at startup whether a change was
    announced, and which version the file had. For an edge, the form is `<source>:<id of its outbox row>`,
    which serves as an idempotency key: the event is journalled only once.
    """

    type: str
    agent: str
    payload: Mapping[str, Any]
    timestamp: datetime
    tags: tuple[str, ...] = ()
    origin: str = "tool"


@frozen(kw_only=True)
class Event:
    """An event in the journal. The sequence number `seq` strictly increases over all event types."""

    seq: int
    draft: EventDraft
    #: Cached wire formats. Each format is encoded once for all subscribers.
    encoded: dict[str, bytes] = field(factory=dict, eq=False, repr=False)


def event_size(event: Event) -> int:
    """Return the approximate size in bytes: 300, plus the texts in payload and tags."""
    draft = event.draft
    texts = sum(len(value) for value in draft.payload.values() if isinstance(value, str))
    return 300 + texts + sum(map(len, draft.tags))


def note_origin(source: str, digest: str, version: int) -> str:
    """Return the origin for an event about a note file."""
    return f"{source}:{digest}:{version}"


def origin_source(origin: str) -> str:
    """Return the source that an origin contains."""
    return origin.partition(":")[0]


def origin_digest(origin: str) -> str | None:
    """Return the file digest in an origin, or None if it has no digest."""
    _, separator, rest = origin.partition(":")
    return rest.partition(":")[0] if separator else None


def origin_version(origin: str) -> int | None:
    """Return the effective version in an origin. Return None if it has no version, as in older events."""
    version = origin.rpartition(":")[2] if origin.count(":") == 2 else ""
    return int(version) if version.isdecimal() else None
