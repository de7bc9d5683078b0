"""The attachment component of the server's health."""

from __future__ import annotations

from typing import Any

from lithos.attachments.extraction.actor import Attaching
from lithos.kernel.state import Component


def look_at_attachments(attaching: Attaching) -> Component | None:
    """Return the health component with the reading progress, or None if attachments are switched off."""
    if not attaching.is_enabled:
        return None
    known = attaching.backlog()
    details: dict[str, Any] = {"files": known.files, "parts": known.parts, "waiting": known.waiting}
    details |= {"unread": dict(known.unread)} if known.unread else {}
    if known.trouble is not None:
        return Component("degraded", known.trouble, details)
    return Component("warming" if known.waiting else "ok", None, details)
