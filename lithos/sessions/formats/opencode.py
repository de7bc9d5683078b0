"""Messages of opencode. `files.opencode` reads them from JSON files or from `opencode.db`.

The format is that of `MessageV2` in anomalyco/opencode (`packages/opencode/src/session/message-v2.ts`, commit
007a9409, and `session.sql.ts`, commit 063e8306, both of 2026, read on 29 November 2026). A record has the
keys `session`, or `info` and `parts`. Reasoning, snapshots and text that opencode adds are left out.
"""

from __future__ import annotations

from typing import Final

from lithos.sessions.formats.values import (
    Record,
    TranscriptFormat,
    files_in,
    object_in,
    objects_in,
    text_in,
    time_in,
)
from lithos.sessions.model.draft import SessionDraft


def _recognises(record: Record) -> bool:
    return isinstance(record.get("info"), dict) and isinstance(record.get("parts"), list)


def _read(record: Record, draft: SessionDraft) -> None:
    session = object_in(record, "session")
    if session:
        draft.identify(
            native=text_in(session, "id"),
            cwd=text_in(session, "directory"),
            agent="subagent" if text_in(session, "parentID", "parent_id") else "",
        )
        return
    info = object_in(record, "info")
    key, when = text_in(info, "id"), time_in(object_in(info, "time"), "created")
    if not key or not draft.message(key):
        return
    parts = list(objects_in(record.get("parts")))
    if info.get("role") == "user":
        texts = [text_in(part, "text") for part in parts if _is_typed(part)]
        draft.prompt("user", "\n\n".join(filter(None, texts)), when, key)
        return
    for part in parts:
        kind, state = part.get("type"), object_in(part, "state")
        if kind == "text" and _is_typed(part):
            draft.answer(text_in(part, "text"), when, key)
        elif kind == "tool":
            draft.tool(text_in(part, "tool"), files_in(state.get("input")), when, key)
            draft.output(text_in(state, "output", "error"))
        elif kind == "patch" and isinstance(part.get("files"), list):
            draft.tool("", [each for each in part["files"] if isinstance(each, str)], when, key)


def _is_typed(part: Record) -> bool:
    return part.get("type") == "text" and not (part.get("synthetic") or part.get("ignored"))


OPENCODE: Final = TranscriptFormat("opencode", _recognises, _read)
