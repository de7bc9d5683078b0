"""Events and notices as clients see them: JSON objects, and frames of server-sent events."""

from __future__ import annotations

from typing import Any, Final

from lithos.core.events import Event
from lithos.core.times import format_time
from lithos.front.replies import compact_json
from lithos.services.event_stream import Resync

KEEPALIVE_FRAME: Final = b": keepalive\n\n"
OVERFLOW_FRAME: Final = b": overflow\n\n"


def event_record(event: Event) -> dict[str, Any]:
    """An event as one object; its origin stays inside."""
    draft = event.draft
    return {
        "id": str(event.seq),
        "seq": event.seq,
        "type": draft.type,
        "agent": draft.agent,
        "payload": dict(draft.payload),
        "tags": list(draft.tags),
        "timestamp": format_time(draft.timestamp),
    }


def resync_record(notice: Resync) -> dict[str, Any]:
    """A resync notice as one object."""
    return {"type": "resync", **_resync_data(notice)}


def event_frame(event: Event) -> bytes:
    """One frame: id, event, data. Keys of the envelope win over those of the payload."""
    draft = event.draft
    envelope = {"agent": draft.agent, "tags": list(draft.tags), "timestamp": format_time(draft.timestamp)}
    data = {"agent": draft.agent, **draft.payload, **envelope}
    return f"id: {event.seq}\nevent: {draft.type}\ndata: {compact_json(data)}\n\n".encode()


def resync_frame(notice: Resync) -> bytes:
    """A frame without id, so that the client's position stays what it was."""
    return f"event: resync\ndata: {compact_json(_resync_data(notice))}\n\n".encode()


def _resync_data(notice: Resync) -> dict[str, str]:
    return {"reason": notice.reason, "since_id": notice.since, "message": notice.message}
