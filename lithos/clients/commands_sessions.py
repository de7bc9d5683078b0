"""The commands `lithos brief`, which prints a briefing, and `lithos checkpoint`, which saves a text."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio

from lithos.clients.files_session_cursors import SessionBusy, SessionCursor, sessions_folder, told_session
from lithos.clients.hooks.checkpoint import (
    LARGEST_FILE,
    LONGEST_TEXT,
    Checkpoint,
    NotStored,
    StoredCheckpoint,
    checkpoint_of,
    read_file,
    storing,
)
from lithos.clients.hooks.context_call import TOOL, arguments_of, text_of
from lithos.clients.hooks.payload import Payload
from lithos.kernel.settings import StorageConfig
from lithos.server.command.asking import ask_tool, require_owner
from lithos.server.command.output import tell
from lithos.server.command.session import CommandFailed, CommandSession, refusing

#: Number of seconds to wait until another briefing of the same session is finished.
_SESSION_WAIT = 10.0
#: Maximum number of characters in a session id.
_LONGEST_SESSION = 1_000


def run_brief(session: CommandSession) -> int:
    """Print the briefing. Return 0 even if there is nothing new. Raises `CommandFailed`."""
    typed = session.typed
    if not typed.get("query") and not typed.get("task"):
        raise CommandFailed("The subject of the briefing is missing. Give a QUERY, --task ID, or both.", 2)
    with _told(session) as told:
        since = None if told is None else told.cursor
        arguments = arguments_of(typed, since) | ({"project": typed["project"]} if "project" in typed else {})
        answer = trio.run(partial(_ask, session, arguments))
        lines = text_of(answer).split("\n") if answer["text"] else ()
        tell(session, answer, lines)
        if told is not None and answer.get("cursor"):
            told.store(str(answer["cursor"]))
    return 0


@contextmanager
def _told(session: CommandSession) -> Iterator[SessionCursor | None]:
    """Yield the cursor of the named session. If no session is named, yield None."""
    name = session.typed.get("session")
    if name is None:
        yield None
        return
    data = session.config.of(StorageConfig).data_dir
    with (
        refusing(SessionBusy, ValueError),
        told_session(sessions_folder(os.environ), data, name, _SESSION_WAIT) as told,
    ):
        yield told


async def _ask(session: CommandSession, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    owner = await require_owner(session, "only a running server can make a briefing")
    return await ask_tool(owner, TOOL, arguments)


def run_checkpoint(session: CommandSession) -> int:
    """Store the text and print the path of its note. Raises `CommandFailed`."""
    typed = session.typed
    name = typed.get("session")
    if name is not None and not 0 < len(name) <= _LONGEST_SESSION:
        raise CommandFailed(
            f"A session id has 1 to {_LONGEST_SESSION:,} characters. Give an id of that length.", 2
        )
    checkpoint = checkpoint_of(_read_text(typed), typed, Payload())
    stored = trio.run(partial(_store, session, checkpoint))
    line = f"The text is already in {stored.path}; nothing was changed."
    if stored.status == "stored":
        line = f"Stored in {stored.path} (version {stored.version})."
    tell(session, stored._asdict(), line)
    return 0


def _read_text(typed: dict[str, Any]) -> str:
    file = typed.get("file")
    if "text" in typed and file is not None:
        raise CommandFailed("Both --text and FILE are given. Use only one of them.", 2)
    if "text" in typed:
        text = str(typed["text"]).strip()
    elif file is not None and file != "-":
        try:
            text = read_file(Path(file))
        except OSError as failure:
            raise CommandFailed(
                f"Cannot read {file}: {failure.strerror}. Name a readable file.", 2
            ) from failure
    elif sys.stdin is None or os.isatty(0):
        raise CommandFailed("The text is missing. Give it with --text TEXT, in a FILE, or on stdin.", 2)
    else:
        text = sys.stdin.buffer.read(LARGEST_FILE).decode("utf-8", "replace").strip()
    if not text:
        raise CommandFailed("The text is empty. Give it with --text, in a FILE, or on stdin.", 2)
    if len(text) > LONGEST_TEXT:
        raise CommandFailed(
            f"A checkpoint has at most {LONGEST_TEXT:,} characters, and this text has "
            f"{len(text):,}. Shorten it, or write separate notes with lithos_write.",
            2,
        )
    return text


async def _store(session: CommandSession, checkpoint: Checkpoint) -> StoredCheckpoint:
    owner = await require_owner(session, "only a running server can store checkpoints")
    calls = storing(checkpoint)
    tool, arguments = next(calls)
    while True:
        answer = await owner.call(tool, arguments) or {}
        try:
            tool, arguments = calls.send(answer)
        except StopIteration as end:
            stored: StoredCheckpoint = end.value
            return stored
        except NotStored as refusal:
            raise CommandFailed(str(refusal)) from refusal
