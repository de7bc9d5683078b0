"""Builders of task, claim and finding events (docs/spec/events-http.md §1)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lithos.kernel.values.events import EventDraft
from lithos.tasks.model.task import Claim, Task


def make_event(kind: str, by: str, now: datetime, tags: Sequence[str], /, **payload: Any) -> EventDraft:
    """Return an event for an action of an agent, with the tags of the task.

    The payload has the order of the arguments.
    """
    return EventDraft(type=kind, agent=by, payload=payload, timestamp=now, tags=tuple(tags))


def task_event(kind: str, task: Task, by: str, now: datetime, **payload: Any) -> EventDraft:
    """Return an event for an agent's action on a task."""
    return make_event(kind, by, now, task.tags, task_id=task.id, agent=by, **payload)


def as_json_text(value: object) -> str:
    """Return a payload value as JSON text, with `null` for None."""
    return json.dumps(value, ensure_ascii=False)


def created_event(task: Task) -> EventDraft:
    """Return the event for a new task."""
    return make_event(
        "task.created", task.created_by, task.created_at, task.tags, task_id=task.id, title=task.title
    )


def ready_event(task: Task, by: str, now: datetime) -> EventDraft:
    """Return the event for a task that became ready because of the agent's action."""
    return make_event("task.ready", by, now, task.tags, task_id=task.id, title=task.title)


def expired_event(claim: Claim, tags: Sequence[str], now: datetime) -> EventDraft:
    """Return the event for an expired claim. Its agent is the agent that held the claim."""
    return make_event(
        "task.claim_expired",
        claim.agent,
        now,
        tags,
        task_id=claim.task_id,
        agent=claim.agent,
        aspect=claim.aspect,
        fence=claim.fence,
    )
