"""Transcripts of other programs: JSON lines, each with a speaker and a text under one of the usual names."""

from __future__ import annotations

from typing import Final

from lithos.sessions.formats.claude_code import CLAUDE_CODE
from lithos.sessions.formats.codex import CODEX
from lithos.sessions.formats.gemini import GEMINI
from lithos.sessions.formats.opencode import OPENCODE
from lithos.sessions.formats.values import Record, TranscriptFormat, object_in, text_in, texts_in, time_in
from lithos.sessions.model.draft import SessionDraft

_SPEAKERS: Final = ("role", "speaker", "sender", "from", "author", "who", "type")
_TEXTS: Final = ("content", "text", "message", "body", "parts")
_TIMES: Final = ("timestamp", "time", "created_at", "createdAt", "date", "ts")
_PEOPLE: Final = ("user", "human", "person")
_TOOLS: Final = ("tool", "function", "tool_result")
_NEITHER: Final = ("system", "developer", "info", "meta")


def _recognises(record: Record) -> bool:
    return bool(_speaker(record)) and any(name in record for name in _TEXTS)


def _speaker(record: Record) -> str:
    return (text_in(record, *_SPEAKERS) or text_in(object_in(record, "author"), "role", "name")).lower()


def _read(record: Record, draft: SessionDraft) -> None:
    draft.identify(cwd=text_in(record, "cwd"))
    inner = object_in(record, "message")
    speaker = text_in(inner, "role").lower() or _speaker(record)
    texts = (texts_in(each.get(name)) for each in (inner, record) for name in _TEXTS)
    text, when = next(filter(None, texts), ""), time_in(record, *_TIMES)
    if not speaker or speaker in _NEITHER:
        return
    if speaker in _TOOLS:
        draft.output(text)
    elif speaker in _PEOPLE:
        draft.prompt("user", text, when)
    else:
        draft.answer(text, when)


GENERIC: Final = TranscriptFormat("other", _recognises, _read)
#: All formats by client. The last recognises almost everything, so it is tried last.
FORMATS: Final = {each.client: each for each in (CODEX, GEMINI, CLAUDE_CODE, OPENCODE, GENERIC)}


def recognise(record: Record) -> TranscriptFormat | None:
    """Return the format of a record, or None if it is unknown."""
    return next((each for each in FORMATS.values() if each.recognises(record)), None)
