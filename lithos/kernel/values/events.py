"""Event values and their hidden origins; one total order by `seq` (docs/spec/events-http.md §1 and §2)."""

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

#: Sources of hidden origins: a tool call, one that takes a change back, and the enrich worker, which skips
#: events of its own making.
TOOL: Final = "tool"
TAKING_BACK: Final = "undo"
ENRICHMENT: Final = "enrichment"


@frozen(kw_only=True)
class EventDraft:
    """An event before it is journalled, without a sequence number.

    `origin` never leaves the process: `<source>` or `<source>:<digest>:<version>`, where the digest is that
    of the note file the event is about, so that a start scan knows whether a change was announced, and
    which version its bytes had; for an edge it is `<source>:<id of its outbox row>`, so that the event is
    journalled once (idempotency key).
    """

    type: str
    agent: str
    payload: Mapping[str, Any]
    timestamp: datetime
    tags: tuple[str, ...] = ()
    origin: str = "tool"


@frozen(kw_only=True)
class Event:
    """A journalled event: the sequence number `seq` strictly increases over all types of events."""

    seq: int
    draft: EventDraft
    #: Cache of its wire formats, each encoded once for all subscribers.
    encoded: dict[str, bytes] = field(factory=dict, eq=False, repr=False)


def event_size(event: Event) -> int:
    """The approximate size in bytes: 300, and the texts of its payload and tags."""
    draft = event.draft
    texts = sum(len(value) for value in draft.payload.values() if isinstance(value, str))
    return 300 + texts + sum(map(len, draft.tags))


def note_origin(source: str, digest: str, version: int) -> str:
    """The origin of an event about a note file."""
    return f"{source}:{digest}:{version}"


def origin_source(origin: str) -> str:
    """The source inside an origin."""
    return origin.partition(":")[0]


def origin_digest(origin: str) -> str | None:
    """The file digest inside an origin, if it has one."""
    _, separator, rest = origin.partition(":")
    return rest.partition(":")[0] if separator else None


def origin_version(origin: str) -> int | None:
    """Return the effective version inside an origin; older events lack it."""
    version = origin.rpartition(":")[2] if origin.count(":") == 2 else ""
    return int(version) if version.isdecimal() else None
