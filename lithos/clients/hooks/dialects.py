"""The dialects of clients: how each client names an event, and the form in which it reads the answer.

See docs/spec/integration.md §2.1. A dialect is found in the payload, because several clients also run the
hooks that are configured for Claude Code. Only documented or measured formats are used:

* `claude-code`: code.claude.com/docs/en/hooks, version 2.1.218 (2026). PreCompact has no documented field for
  the model, so the reminder stays plain text, which JSON-only clients do not get.
* `codex`: developers.openai.com/codex/hooks (2026-08-14), and codex-rs/hooks/schema/generated. An unknown key
  makes an answer invalid. `Stop` needs a JSON object.
* `cursor`: cursor.com/docs/hooks (2026). At the prompt, `additional_context` is not documented. It was
  measured with version 3.20.17 (2026-09-14).
* `gemini-cli`: google-gemini/gemini-cli, docs/hooks/reference.md (2026-08-29).
* `copilot-cli`: github/docs, content/copilot/reference/hooks-reference.md (2026). The output of a hook at the
  prompt is dropped.
* `vscode`: microsoft/vscode-docs, docs/agents/reference/hooks-reference.md (2026-07-29). At the prompt, the
  page names no context, but issues 308121 and 308297 of microsoft/vscode (2026-04) do.
* `opencode`: the plugin file of `lithos connect opencode --hooks`, which reads `additionalContext`.
* `windsurf`: docs.windsurf.com/windsurf/cascade/hooks (2026). A hook cannot give the model any text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

Kind = Literal["start", "prompt", "compaction", "end"]

#: Kinds of events by the names that clients use. The plugin for opencode uses the kinds themselves.
KINDS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(("SessionStart", "sessionStart", "start"), "start"),
    **dict.fromkeys(("UserPromptSubmit", "userPromptSubmitted", "beforeSubmitPrompt"), "prompt"),
    **dict.fromkeys(("BeforeAgent", "pre_user_prompt", "prompt"), "prompt"),
    **dict.fromkeys(("PreCompact", "preCompact", "PreCompress", "compaction"), "compaction"),
    **dict.fromkeys(("SessionEnd", "sessionEnd", "Stop", "SubagentStop", "end"), "end"),
}

#: Function that returns what a hook prints, for the event and the text for the model.
Form = Callable[[str, str], str]


def _nothing(event: str, text: str) -> str:
    del event, text
    return ""


def _plain(event: str, text: str) -> str:
    del event
    return text


def _nested(event: str, text: str) -> str:
    return _json(hookSpecificOutput={"hookEventName": event, "additionalContext": text}) if text else ""


def _camel(event: str, text: str) -> str:
    del event
    return _json(additionalContext=text) if text else ""


def _snake(event: str, text: str) -> str:
    del event
    return _json(additional_context=text) if text else ""


def _cursor_prompt(event: str, text: str) -> str:
    del event
    return _json(**{"continue": True, "additional_context": text}) if text else ""


def _empty_object(event: str, text: str) -> str:
    del text
    return "{}" if event in ("Stop", "SubagentStop") else ""


def _json(**fields: Any) -> str:
    return json.dumps(fields)  # ASCII only, so every encoding of the output can carry it.


class Dialect(NamedTuple):
    """The forms of a client's answers by kind of event. `other` is for events of no known kind."""

    start: Form = _nothing
    prompt: Form = _nothing
    compaction: Form = _nothing
    end: Form = _nothing
    other: Form = _nothing
    #: Environment variable with the project's folder, for a payload without a folder.
    folder: str = ""


DIALECTS: Final[Mapping[str, Dialect]] = {
    "claude-code": Dialect(_nested, _nested, _plain, other=_plain, folder="CLAUDE_PROJECT_DIR"),
    "codex": Dialect(_nested, _nested, end=_empty_object),
    "cursor": Dialect(_snake, _cursor_prompt, folder="CURSOR_PROJECT_DIR"),
    "gemini-cli": Dialect(_nested, _nested, folder="GEMINI_PROJECT_DIR"),
    "copilot-cli": Dialect(_camel),
    "vscode": Dialect(_nested, _nested),
    "opencode": Dialect(_camel, _camel, _camel),
    "windsurf": Dialect(),
}


def form_of(dialect: str, event: str) -> Form:
    """Return the form of the answer to an event."""
    form: Form = getattr(DIALECTS[dialect], KINDS.get(event, "other"))
    return form


def shows(dialect: str, event: str) -> bool:
    """Return whether a text in the answer to this event reaches the model."""
    return form_of(dialect, event) not in (_nothing, _empty_object)


def recognise(found: Mapping[str, Any], environment: Mapping[str, str]) -> str | None:
    """Return the client that sends such a payload. If several clients send it, return None."""
    return next((client for client, matches in _MARKS if matches(found, environment)), None)


def _is_copilot(found: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    """Recognise both forms of Copilot CLI. Its events have either camel case or the names of Claude Code."""
    del environment
    time = found.get("timestamp")
    if "sessionId" in found:
        return isinstance(time, int | float) and not {"hookEventName", "hook_event_name"} & found.keys()
    is_start = found.get("hook_event_name") == "SessionStart" and "transcript_path" not in found
    return is_start and isinstance(time, str)


def _is_gemini(found: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    # A variable alone could come from a client that was started by another client.
    own = environment.get("GEMINI_SESSION_ID")
    names = ("BeforeAgent", "PreCompress")
    return found.get("hook_event_name") in names or (bool(own) and own == found.get("session_id"))


def _is_codex(found: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    del environment
    keys = {"model", "permission_mode", "transcript_path"}
    return "turn_id" in found or (keys <= found.keys() and found["transcript_path"] is None)


_Mark = Callable[[Mapping[str, Any], Mapping[str, str]], bool]
#: Marks of each client's payloads. The first match counts.
_MARKS: Final[tuple[tuple[str, _Mark], ...]] = (
    ("windsurf", lambda found, _: "agent_action_name" in found),
    ("cursor", lambda found, _: "cursor_version" in found or "composer_mode" in found),
    ("copilot-cli", _is_copilot),
    ("vscode", lambda found, _: "sessionId" in found and "hookEventName" in found),
    ("gemini-cli", _is_gemini),
    ("codex", _is_codex),
)
