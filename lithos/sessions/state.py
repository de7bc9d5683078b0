"""The component of sessions in the server's health, and their numbers."""

from __future__ import annotations

from lithos.kernel.state import Component, Number
from lithos.sessions.service.sessions import Sessions


def look_at_sessions(sessions: Sessions) -> Component | None:
    """Return the health component, or None if no transcripts were added."""
    status = sessions.status()
    if not status.is_enabled and status.trouble is None:
        return None
    details = {
        "folders": len(status.folders),
        "missing_folders": sum(bool(each.problem) for each in status.folders),
        "sessions": status.sessions,
        "turns": status.turns,
        "waiting": status.waiting,
        "with_problems": status.problem_count,
    }
    if status.trouble is not None:
        return Component("degraded", status.trouble, details)
    return Component("warming" if status.waiting else "ok", None, details)


def report_sessions(sessions: Sessions) -> list[Number]:
    """Return the number of sessions for `lithos_stats`, if transcripts were added."""
    status = sessions.status()
    return [Number(125, "sessions", status.sessions)] if status.is_enabled or status.sessions else []
