"""Facts about a session: the hook's input on stdin, the agent, and the folder.

Stdin contains a JSON object or a text to save. Both the size of the input and the time to read it are
limited.

Most fields are those of Claude Code's hooks, which other clients have adopted: `hook_event_name`, `source`
(why a session starts), `session_id`, `cwd`, `prompt`, and `compact_summary` after a compaction. Other clients
have other names for them (`dialects`).
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

from lithos.clients.files_hook_events import events_file, is_first
from lithos.clients.hooks.dialects import DIALECTS, KINDS, Kind, form_of, recognise, shows
from lithos.kernel.operating_system import node_name
from lithos.server.command.hook_failsafe import print_text


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


def agent_of(typed: Mapping[str, Any], environment: Mapping[str, str], sender: str | None = None) -> str:
    """Return the agent id of `--agent`, or else `CLIENT@HOST`.

    CLIENT is `sender`, the client that a payload names. Otherwise it is `--client`, or is found in the
    environment.
    """
    agent = typed.get("agent")
    if agent:
        return str(agent)
    known = (name for variable, name in _CLIENTS.items() if environment.get(variable))
    client = sender or typed.get("client") or next(known, _UNKNOWN)
    return f"{client}@{host_name()}"[:_LONGEST]


def host_name() -> str:
    """Return the name of this machine without the domain."""
    return node_name().partition(".")[0] or "localhost"


#: Maximum number of bytes that are read from stdin. A hook's JSON has about 1 kB, a summary about 20 kB, and
#: a prompt with pasted files some 100 kB.
LARGEST: Final = 1_000_000
#: Maximum number of seconds to read stdin. A client writes before it starts the hook, or immediately after.
_PATIENCE: Final = 0.15
_LONGEST_NAME: Final = 1_000
_NO_OPTIONS: Final[Mapping[str, Any]] = {}


class Payload(NamedTuple):
    """The fields of a hook's input. A missing or unusable field is None."""

    event: str | None = None
    source: str | None = None
    session: str | None = None
    cwd: Path | None = None
    text: str | None = None
    prompt: str | None = None
    #: Client that the payload itself names.
    sender: str | None = None
    #: Key of the dialect in which the client expects the answer. None for a person or an unknown client.
    dialect: str | None = None
    #: Whether the hook must stay silent: the payload is damaged, or comes from a subagent.
    is_ignored: bool = False

    @property
    def kind(self) -> Kind | None:
        """The kind of the event, or None for an unknown event."""
        return KINDS.get(self.event or "")

    @property
    def is_shown(self) -> bool:
        """Whether the model sees a text in the answer."""
        return not self.is_ignored and (self.dialect is None or shows(self.dialect, self.event or ""))

    def rendered(self, text: str) -> str:
        """Return the answer with this text for the model in the form that the client reads."""
        # Strict parsers refuse half a surrogate pair.
        text = text.encode("utf-8", "replace").decode()
        if self.dialect is None:
            return text
        event = self.event or ""
        return form_of(self.dialect, event)(event, text)


def say(told: Payload, text: str) -> None:
    """Print the answer with this text for the model, or nothing. Raises `OSError` if no process reads it."""
    if answer := told.rendered(text):
        print_text(answer)


def is_first_answer(told: Payload, command: str, data: Path) -> bool:
    """Return whether no other hook of this command answers this event. Raises `OSError`.

    Without a session, events cannot be compared, so each of them is the first.
    """
    if told.session is None or told.kind is None:
        return True
    what = (command, str(data.absolute()), told.session, told.kind, told.source, told.prompt)
    return is_first(events_file(os.environ), *what)


def read_payload(typed: Mapping[str, Any], descriptor: int = 0) -> Payload:
    """Return the payload from stdin. The options `--client` and `--event` complete it.

    For a terminal, a closed stdin or an empty pipe, the payload has only the values of these options.
    """
    return parse_payload(_read(descriptor), typed, os.environ)


def parse_payload(
    data: bytes, typed: Mapping[str, Any] = _NO_OPTIONS, environment: Mapping[str, str] = _NO_OPTIONS
) -> Payload:
    """Return the payload in these bytes: the fields of a JSON object, or any other text unchanged."""
    told = Payload(event=typed.get("event"))
    text = data.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    try:
        found = json.loads(text) if text.startswith(("{", "[")) else text
    except (ValueError, RecursionError):
        # A truncated object is not a text to save, but a Markdown text may begin with a bracket.
        found = None if text.startswith("{") else text
    if isinstance(found, str):
        return told._replace(text=found or None, dialect=_dialect_of(told, typed))
    if not isinstance(found, dict):
        return told._replace(is_ignored=True, dialect=_dialect_of(told, typed))
    told = _fields_of(found, told)
    told = told._replace(sender=recognise(found, environment))
    told = told._replace(dialect=_dialect_of(told, typed))
    folder = environment.get(DIALECTS[told.dialect].folder) if told.dialect else None
    return told._replace(cwd=Path(folder)) if folder and told.cwd is None else told


def _fields_of(found: Mapping[str, Any], told: Payload) -> Payload:
    roots = found.get("workspace_roots")  # Cursor runs the user's hooks in its own folder.
    cwd = _text({"cwd": roots[0]}, "cwd") if isinstance(roots, list) and roots else _text(found, "cwd")
    return told._replace(
        event=_text(found, "hook_event_name", "hookEventName", "agent_action_name") or told.event,
        source=_text(found, "source", "trigger"),
        session=_text(found, "session_id", "sessionId", "conversation_id", "trajectory_id"),
        cwd=None if cwd is None or "\0" in cwd else Path(cwd),
        text=_text(found, "compact_summary", most=LARGEST),
        prompt=_text(found, "prompt", most=LARGEST),
        is_ignored=any(isinstance(found.get(key), str) for key in ("agent_id", "parentID")),
    )


def _dialect_of(told: Payload, typed: Mapping[str, Any]) -> str | None:
    """Return the key of the dialect. A payload without an event is not one of a client's hooks."""
    if told.event is None:
        return None
    client = typed.get("client")
    return told.sender or (client if client in DIALECTS else "claude-code")


def _text(found: Mapping[str, Any], *keys: str, most: int = _LONGEST_NAME) -> str | None:
    values = (found.get(key) for key in keys)
    usable = (v for v in values if isinstance(v, str) and v.strip() and len(v) <= most)
    return next(usable, None)


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
