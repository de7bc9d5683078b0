"""Transcripts of Codex: `sessions/YYYY/MM/DD/rollout-*.jsonl` and `archived_sessions/`.

The format is that of `RolloutLine` in openai/codex (`codex-rs/protocol/src/protocol.rs` and `models.rs`, tag
rust-v0.128.0 of 30 April 2026, read on 29 November 2026). Records before version 0.32 have no envelope.
Reasoning, events and instructions are left out. Events repeat the messages.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any, Final

from lithos.sessions.formats.values import (
    Record,
    TranscriptFormat,
    files_in,
    object_in,
    text_in,
    texts_in,
    time_in,
)
from lithos.sessions.model.draft import SessionDraft

_ENVELOPES: Final = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
_ITEMS: Final = ("message", "function_call", "function_call_output", "reasoning")
#: Texts that Codex adds to the conversation in the role of the person.
_ADDED: Final = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|INSTRUCTIONS|permissions instructions|turn_aborted"
    r"|skill|skills_instructions|apps_instructions|plugins_instructions|collaboration_mode|model_switch"
    r"|personality_spec|subagent_notification|user_shell_command)\b|# AGENTS\.md instructions)"
)
#: Maximum number of characters of an output that is parsed as JSON.
_PARSED: Final = 100_000


def _recognises(record: Record) -> bool:
    if record.get("type") in _ENVELOPES and isinstance(record.get("payload"), dict):
        return True
    is_head = {"id", "timestamp", "instructions"} <= record.keys()
    return is_head or (record.get("type") in _ITEMS and ("content" in record or "call_id" in record))


def _read(record: Record, draft: SessionDraft) -> None:
    kind, when = record.get("type"), time_in(record, "timestamp")
    item = object_in(record, "payload") if kind in _ENVELOPES else record
    if kind == "session_meta" or (kind not in _ENVELOPES and "instructions" in record):
        draft.identify(
            native=text_in(item, "id", "session_id"),
            cwd=text_in(item, "cwd"),
            repository=text_in(object_in(item, "git"), "repository_url"),
            agent=text_in(item, "agent_nickname", "agent_role"),
        )
    elif kind == "turn_context":
        draft.identify(cwd=text_in(item, "cwd"))
    elif kind == "event_msg":
        if item.get("type") == "patch_apply_end":
            draft.tool("apply_patch", list(object_in(item, "changes")), when)
    elif kind == "response_item" or kind not in _ENVELOPES:
        _read_item(item, when, draft)


def _read_item(item: Record, when: datetime | None, draft: SessionDraft) -> None:
    match item.get("type"):
        case "message":
            _read_message(item, when, draft)
        case "function_call" | "custom_tool_call":
            name = ".".join(filter(None, (text_in(item, "namespace"), text_in(item, "name"))))
            draft.tool(name, files_in(item.get("arguments") or item.get("input")), when)
        case "local_shell_call":
            draft.tool("shell", (), when)
        case "web_search_call":
            draft.tool("web_search", (), when)
        case "function_call_output" | "custom_tool_call_output":
            draft.output(_output(item.get("output")))


def _read_message(item: Record, when: datetime | None, draft: SessionDraft) -> None:
    text = texts_in(item.get("content"), "input_text", "output_text", "text")
    if item.get("role") == "assistant":
        draft.answer(text, when, text_in(item, "id"))
    elif item.get("role") == "user" and not _ADDED.match(text):
        draft.prompt("user", text, when)


def _output(output: Any) -> str:
    """Return the text of an output: a text, parts, or an object that may be written as JSON."""
    if isinstance(output, str) and output.startswith('{"output"') and len(output) <= _PARSED:
        try:
            output = json.loads(output)
        except (ValueError, RecursionError):
            return str(output)
    if isinstance(output, dict):
        return text_in(output, "output", "content") or texts_in(output.get("content_items"))
    return texts_in(output)


CODEX: Final = TranscriptFormat("codex", _recognises, _read)
