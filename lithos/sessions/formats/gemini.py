"""Transcripts of Gemini CLI: `tmp/<project>/chats/session-*.jsonl`, and `.json` before version 0.34.

The format is that of google-gemini/gemini-cli (`packages/core/src/services/chatRecordingService.ts` and
`chatRecordingTypes.ts`, commits 016443b5 and 04741d1d of 2026, read on 29 November 2026). A message is
written again when its tool calls are known. Rewound messages stay. `logs.json` repeats prompts of the same
chats and is not read.
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
    texts_in,
    time_in,
)
from lithos.sessions.model.draft import SessionDraft


def _recognises(record: Record) -> bool:
    return isinstance(record.get("sessionId"), str) and isinstance(record.get("projectHash"), str)


def _read(record: Record, draft: SessionDraft) -> None:
    if _recognises(record):
        _read_head(record, draft)
        for message in objects_in(record.get("messages")):
            _read_message(message, draft)
    elif isinstance(record.get("$set"), dict):
        for message in objects_in(object_in(record, "$set").get("messages")):
            _read_message(message, draft)
    else:
        _read_message(record, draft)


def _read_head(record: Record, draft: SessionDraft) -> None:
    folders = record.get("directories")
    draft.identify(
        native=text_in(record, "sessionId"),
        agent="subagent" if record.get("kind") == "subagent" else "",
        cwd=folders[0] if isinstance(folders, list) and folders and isinstance(folders[0], str) else "",
    )


def _read_message(message: Record, draft: SessionDraft) -> None:
    key, kind, when = text_in(message, "id"), message.get("type"), time_in(message, "timestamp")
    if not key or kind not in ("user", "gemini") or not draft.message(key):
        return
    text = texts_in(message.get("displayContent") or message.get("content"))
    if kind == "user":
        draft.prompt("user", text, when, key)
        return
    draft.answer(text, when, key)
    for call in objects_in(message.get("toolCalls")):
        draft.tool(text_in(call, "name"), files_in(call.get("args")), when, key)
        draft.output(_output(call))


def _output(call: Record) -> str:
    """Return the output of a tool call: as it was shown, or else as the model got it."""
    shown = call.get("resultDisplay")
    if isinstance(shown, str):
        return shown
    parts = [
        object_in(object_in(part, "functionResponse"), "response") for part in objects_in(call.get("result"))
    ]
    return "\n".join(text_in(part, "output", "error") for part in parts) or texts_in(call.get("result"))


GEMINI: Final = TranscriptFormat("gemini", _recognises, _read)
