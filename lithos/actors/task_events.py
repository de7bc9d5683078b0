"""What a task command answers, and how its events look (events-http spec, section 1)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from attrs import frozen

from lithos.core.events import EventDraft


@frozen
class Done:
    """What a command answers and announces."""

    reply: Any
    events: tuple[EventDraft, ...] = ()


def make_event(kind: str, by: str, now: datetime, /, **payload: Any) -> EventDraft:
    """An event of an agent; its payload in the order given."""
    return EventDraft(type=kind, agent=by, payload=payload, timestamp=now)


def as_json_text(value: object) -> str:
    """A payload value that is told as JSON text; None is `null`."""
    return json.dumps(value, ensure_ascii=False)
