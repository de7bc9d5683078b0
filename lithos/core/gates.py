"""Gates: tasks that hold others back until something outside has happened."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from lithos.core.errors import InvalidInput
from lithos.core.tasks import Task
from lithos.core.times import parse_time

GATE_TYPES: Final = ("human", "timer", "ci", "pr", "external_task")


def normalise_gate_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata of a valid gate, a timer's `ready_at` in UTC and whole seconds; raises `InvalidInput`."""
    kind = metadata.get("gate_type")
    if kind not in GATE_TYPES:
        raise InvalidInput(f"A gate needs metadata.gate_type, one of {', '.join(GATE_TYPES)}; not {kind!r}.")
    if kind != "timer":
        return dict(metadata)
    ready_at = read_ready_at(metadata)
    if ready_at is None:
        raise InvalidInput(
            "A timer gate needs metadata.ready_at, a time like 2026-01-31T12:00:00Z; "
            f"not {metadata.get('ready_at')!r}."
        )
    return {**metadata, "ready_at": ready_at.astimezone(UTC).isoformat(timespec="seconds")}


def read_ready_at(metadata: Mapping[str, Any]) -> datetime | None:
    """A timer's time, or None when it cannot be read."""
    text = metadata.get("ready_at")
    if not isinstance(text, str):
        return None
    try:
        return parse_time(text)
    except ValueError:
        return None


def is_gate_open_to_pass(gate: Task, now: datetime) -> bool:
    """True when nothing has to wait for the gate any more: completed, or an open timer past its time."""
    if gate.status == "completed":
        return True
    if not gate.is_open or gate.metadata.get("gate_type") != "timer":
        return False
    ready_at = read_ready_at(gate.metadata)
    return ready_at is not None and ready_at <= now
