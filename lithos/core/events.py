"""Events: what happened, in one total order (events-http spec, sections 1 and 2)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from attrs import field, frozen

NOTE_CREATED: Final = "note.created"
NOTE_UPDATED: Final = "note.updated"
NOTE_DELETED: Final = "note.deleted"
NOTE_RENAMED: Final = "note.renamed"
AGENT_REGISTERED: Final = "agent.registered"
EDGE_UPSERTED: Final = "edge.upserted"

#: Sources of hidden origins: a tool call, and the enrich worker, which skips events of its own making.
TOOL: Final = "tool"
ENRICHMENT: Final = "enrichment"
#: Who the events and versions made by enrichment name.
ENRICH_AGENT: Final = "lithos-enrich"


@frozen(kw_only=True)
class EventDraft:
    """An event before it has its place in the order.

    `origin` never leaves the process: `<source>` or `<source>:<digest>`, where the digest is that of
    the note file the event tells of, so that a start scan knows whether a change was announced; for
    an edge it is the id of its outbox row, so that the event is journalled once.
    """

    type: str
    agent: str
    payload: Mapping[str, Any]
    timestamp: datetime
    tags: tuple[str, ...] = ()
    origin: str = "tool"


@frozen(kw_only=True)
class Event:
    """An event in its place: `seq` strictly increases over all kinds of events."""

    seq: int
    draft: EventDraft
    #: Its forms on the wire, made once for all who get it; whoever encodes keeps them here.
    encoded: dict[str, bytes] = field(factory=dict, eq=False, repr=False)


def origin_digest(origin: str) -> str | None:
    """The file digest inside an origin, if it has one."""
    _, separator, digest = origin.partition(":")
    return digest if separator else None
