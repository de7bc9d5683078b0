"""Events and notices as clients see them: JSON objects, and frames of server-sent events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lithos.core.events import Event
from lithos.core.times import format_time
from lithos.front.replies import compact_json
from lithos.services.event_stream import Resync

KEEPALIVE_FRAME: Final = b": keepalive\n\n"
OVERFLOW_FRAME: Final = b": overflow\n\n"


def event_text(event: Event) -> str:
    """An event as one JSON object; its origin stays inside."""
    return _once(event, "object", lambda: compact_json(event_record(event)))


def event_record(event: Event) -> dict[str, Any]:
    """What that object holds."""
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


def event_frame(event: Event) -> str:
    """One frame: id, event, data. Keys of the envelope win over those of the payload."""
    return _once(event, "frame", lambda: _make_frame(event))


def _once(event: Event, form: str, encode: Callable[[], str]) -> str:
    """Encode an event the first time that anybody wants it so."""
    text = event.encoded.get(form)
    if text is None:
        text = event.encoded[form] = encode()
    return text


def _make_frame(event: Event) -> str:
    draft = event.draft
    envelope = {"agent": draft.agent, "tags": list(draft.tags), "timestamp": format_time(draft.timestamp)}
    data = {"agent": draft.agent, **draft.payload, **envelope}
    return f"id: {event.seq}\nevent: {draft.type}\ndata: {compact_json(data)}\n\n"


def resync_frame(notice: Resync) -> str:
    """A frame without id, so that the client's position stays what it was."""
    return f"event: resync\ndata: {compact_json(_resync_data(notice))}\n\n"


def _resync_data(notice: Resync) -> dict[str, str]:
    return {"reason": notice.reason, "since_id": notice.since, "message": notice.message}
