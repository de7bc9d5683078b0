"""Facts about a session: the hook's input on stdin, the agent, and the folder.

Stdin contains a JSON object or a text to save. Both the size of the input and the time to read it are
limited.

The fields are those of Claude Code's hooks, which other clients have adopted: `hook_event_name`, `source`
(why a session starts), `session_id`, `cwd`, and `compact_summary` after a compaction.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple


def folder_of(told: Path | None) -> Path:
    """Return the folder that the client reported.

    If the reported folder does not exist, return the current folder.
    """
    return told if told is not None and told.is_absolute() and told.is_dir() else Path.cwd()


def repository_of(folder: Path) -> Path:
    """Return the repository that contains the folder, or else the folder itself."""
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)


def name_of(path: str) -> str:
    """Return a folder name as valid text.

    Bytes that are not UTF-8 are replaced, because the server expects text.
    """
    return os.fsencode(path).decode(errors="replace")


#: Clients by environment variable. A client sets this variable for the programs that it starts.
_CLIENTS: Final = {
    "CLAUDECODE": "claude-code",
    "CLAUDE_PROJECT_DIR": "claude-code",
}
_UNKNOWN: Final = "lithos"
_LONGEST: Final = 200


def agent_of(typed: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Return the agent id of `--agent`, or else `CLIENT@HOST`.

    CLIENT is `--client`, or is found in the environment.
    """
    agent = typed.get("agent")
    if agent:
        return str(agent)
    known = (name for variable, name in _CLIENTS.items() if environment.get(variable))
    client = typed.get("client") or next(known, _UNKNOWN)
    return f"{client}@{host_name()}"[:_LONGEST]


def host_name() -> str:
    """Return the name of this machine without the domain."""
    return os.uname().nodename.partition(".")[0] or "localhost"


#: Maximum number of bytes that are read from stdin. A hook's JSON has about 1 kB, and a summary about 20 kB.
LARGEST: Final = 262_144
#: Maximum number of seconds to read stdin. A client writes before it starts the hook, or immediately after.
_PATIENCE: Final = 0.15
_LONGEST_NAME: Final = 1_000


class Payload(NamedTuple):
    """The fields of a hook's input. A missing or unusable field is None."""

    event: str | None = None
    source: str | None = None
    session: str | None = None
    cwd: Path | None = None
    text: str | None = None
    prompt: str | None = None


def read_payload(descriptor: int = 0) -> Payload:
    """Return the payload from stdin.

    For a terminal, a closed stdin or an empty pipe, the payload is empty.
    """
    return parse_payload(_read(descriptor))


def parse_payload(data: bytes) -> Payload:
    """Return the payload in these bytes: the fields of a JSON object, or any other text unchanged."""
    text = data.decode("utf-8", "replace").strip()
    if not text.startswith("{"):
        return Payload(text=text or None)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return Payload()  # A truncated object is not a text to save.
    cwd = _text(found, "cwd")
    return Payload(
        event=_text(found, "hook_event_name"),
        source=_text(found, "source"),
        session=_text(found, "session_id"),
        cwd=None if cwd is None or "\0" in cwd else Path(cwd),
        text=_text(found, "compact_summary", LARGEST),
        prompt=_text(found, "prompt", LARGEST),
    )


def _text(found: Mapping[str, Any], key: str, most: int = _LONGEST_NAME) -> str | None:
    value = found.get(key)
    return value if isinstance(value, str) and value.strip() and len(value) <= most else None


def _read(descriptor: int) -> bytes:
    if sys.stdin is None or os.isatty(descriptor):
        return b""
    found = bytearray()
    until = time.monotonic() + _PATIENCE
    while len(found) <= LARGEST:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
        piece = os.read(descriptor, 65_536) if ready else b""
        if not piece:
            break
        found += piece
        # Some clients do not close the pipe, so the input ends after a complete object.
        if found.startswith(b"{") and found.rstrip().endswith(b"}") and _is_whole(found):
            break
    return bytes(found[:LARGEST])


def _is_whole(data: bytearray) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True
