"""Events that a hook has just answered, so that a second hook for the same event stays silent.

Cursor, VS Code and Copilot CLI also run the hooks that are configured for Claude Code. If the hooks of Lithos
are in both places, the client starts two hooks for one event. One small file of the user contains the digests
of the events of the last seconds.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lithos.kernel.databases.private_files import opened, overwrite, state_folder
from lithos.kernel.operating_system import NO_FOLLOW, read_at, wait_for_lock

#: Seconds in which an event counts as the same event.
WITHIN: Final = 5.0
#: Maximum number of stored events. The oldest event is deleted first.
MOST_EVENTS: Final = 500
_LARGEST: Final = 65_536


def is_first(path: Path, *event: str | None) -> bool:
    """Return whether no hook has answered this event within the last seconds, and store that one has now.

    Raises `OSError`.
    """
    digest = hashlib.sha256(json.dumps(event).encode()).hexdigest()[:32]
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with opened(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW) as descriptor:
        wait_for_lock(descriptor)
        now = time.time()
        # A clock that was set back must not silence a hook for hours.
        recent = {key: at for key, at in _read(descriptor).items() if abs(now - at) < WITHIN}
        if digest in recent:
            return False
        kept = sorted(recent.items(), key=lambda item: item[1])[-(MOST_EVENTS - 1) :]
        overwrite(descriptor, json.dumps(dict(kept) | {digest: now}).encode())
        return True


def _read(descriptor: int) -> dict[str, float]:
    try:
        found = json.loads(read_at(descriptor, _LARGEST, 0))
    except (ValueError, RecursionError):
        return {}
    times = found.items() if isinstance(found, dict) else ()
    return {key: at for key, at in times if isinstance(at, int | float)}


def events_file(environment: Mapping[str, str]) -> Path:
    """Return the file with the events."""
    return state_folder(environment) / "hook-events"
