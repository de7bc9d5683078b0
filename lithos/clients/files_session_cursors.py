"""Cursors of sessions, which prevent a briefing from repeating passages of earlier briefings.

See docs/spec/context.md §1.

Each cursor is a small file in `$XDG_STATE_HOME/lithos/sessions/`. The file belongs to the user. It is not in
the data directory, which other machines may share. The file is locked during a briefing, so two briefings of
one session do not print the same passages. A damaged file is ignored, and the worst effect is a repetition.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from lithos.kernel.databases.private_files import overwrite, state_folder
from lithos.kernel.operating_system import CLOSE_ON_EXEC, NO_FOLLOW, read_at, try_lock

#: Maximum number of stored sessions. The session with the oldest briefing is deleted first.
MOST_SESSIONS: Final = 200
#: Maximum number of characters in a session id, and in a cursor.
LONGEST: Final = 1_000
#: Maximum number of bytes in a file, enough for an id, a cursor and a path in which every character is
#: escaped.
_LARGEST: Final = 65_536
_PAUSE: Final = 0.01
_NAME_LENGTH: Final = 32


class SessionBusy(Exception):
    """Raised if another process is already making a briefing for the session."""


class SessionCursor:
    """The locked cursor file of one session."""

    def __init__(self, descriptor: int, session: str, data: str) -> None:
        self._descriptor = descriptor
        self._session = session
        self._data = data

    @property
    def cursor(self) -> str | None:
        """Return the last cursor of the session, or None for a new session."""
        try:
            found = json.loads(read_at(self._descriptor, _LARGEST, 0))
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or (found.get("session"), found.get("data")) != (
            self._session,
            self._data,
        ):
            return None
        cursor = found.get("cursor")
        return cursor if isinstance(cursor, str) and 0 < len(cursor) <= LONGEST else None

    def store(self, cursor: str) -> None:
        """Store the last cursor of the session. Raises `OSError`."""
        content = {"session": self._session, "data": self._data, "cursor": cursor[:LONGEST]}
        data = json.dumps(content).encode()
        overwrite(self._descriptor, data)  # The lock is on this file, so write in place.


@contextmanager
def told_session(folder: Path, data: Path, session: str, wait: float) -> Iterator[SessionCursor]:
    """Lock and yield the cursor of a session.

    Raises `SessionBusy` if the lock is not free within `wait` seconds.

    Raises `OSError` if `folder` is not writable, and `ValueError` for an id that is empty or too long.
    """
    if not session or len(session) > LONGEST:
        raise ValueError(f"A session id has 1 to {LONGEST:,} characters. Give an id of that length.")
    real = os.path.realpath(data)
    name = hashlib.sha256(os.fsencode(real) + b"\0" + session.encode("utf-8", "surrogateescape")).hexdigest()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = _lock(folder / name[:_NAME_LENGTH], time.monotonic() + wait)
    try:
        yield SessionCursor(descriptor, session, real)
        _forget_oldest(folder)
    finally:
        os.close(descriptor)


def _lock(path: Path, until: float) -> int:
    """Open and lock the file. Return its descriptor after checking that the file is still at `path`."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | CLOSE_ON_EXEC | NO_FOLLOW, 0o600)
        try:
            if try_lock(descriptor):
                with suppress(FileNotFoundError):  # Another process has just deleted the file.
                    if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                        return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        if time.monotonic() > until:
            raise SessionBusy(
                "Another command is making a briefing for the same session. Try again in a moment."
            )
        time.sleep(_PAUSE)


def _forget_oldest(folder: Path) -> None:
    found: list[tuple[int, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(entry.name) == _NAME_LENGTH:
                with suppress(FileNotFoundError):
                    found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path))
    for _, path in sorted(found, reverse=True)[MOST_SESSIONS:]:
        with suppress(FileNotFoundError):
            os.unlink(path)


def sessions_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder that contains the cursors."""
    return state_folder(environment) / "sessions"
