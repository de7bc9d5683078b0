"""Hooks answer the payloads of every client in the form that the client reads (behaviour 313)."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from lithos.clients.files_hook_events import MOST_EVENTS, is_first
from lithos.clients.hooks.dialects import DIALECTS
from lithos.clients.hooks.payload import LARGEST, Payload, parse_payload

FOLDER = Path(__file__).with_name("payloads")
PAYLOADS: dict[str, dict[str, dict[str, Any]]] = {
    path.stem: json.loads(path.read_text())["payloads"] for path in FOLDER.glob("*.json")
}
EVERY = [(client, kind) for client, events in PAYLOADS.items() for kind in events]
#: Answers of the clients' pages for the text "T". Missing events take no text for the model.
NESTED = {
    "start": {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "T"}},
    "prompt": {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "T"}},
}
GEMINI = {"hookSpecificOutput": {"hookEventName": "BeforeAgent", "additionalContext": "T"}}
FLAT = {"additionalContext": "T"}
ANSWERS: dict[str, dict[str, Any]] = {
    "claude-code": NESTED | {"compaction": "T"},
    "codex": NESTED | {"end": {}},
    "cursor": {
        "start": {"additional_context": "T"},
        "prompt": {"continue": True, "additional_context": "T"},
    },
    "gemini-cli": NESTED | {"prompt": GEMINI},
    "copilot-cli": {"start": FLAT},
    "vscode": NESTED,
    "opencode": {"start": FLAT, "prompt": FLAT, "compaction": FLAT},
    "windsurf": {},
}
#: Names of events that a payload does not contain, as the installed commands pass them.
EVENTS = {
    "copilot-cli": {
        "start": "sessionStart", "prompt": "userPromptSubmitted",
        "compaction": "preCompact", "end": "sessionEnd",
    },
    "opencode": {kind: kind for kind in ("start", "prompt", "compaction", "end")},
}  # fmt: skip


def parse(client: str, kind: str, **changed: Any) -> Payload:
    typed = {"client": client, "event": EVENTS.get(client, {}).get(kind)}
    found = {key: value for key, value in (PAYLOADS[client][kind] | changed).items() if value != "drop"}
    return parse_payload(json.dumps(found).encode(), typed)


@pytest.mark.parametrize(("client", "kind"), EVERY)
def test_answer_has_the_form_that_the_client_documents(client: str, kind: str) -> None:
    """Behaviour 313: one JSON object or nothing, except the instruction for Claude Code's summary."""
    told = parse(client, kind)
    printed = told.rendered("T")
    wanted = ANSWERS[client].get(kind, "")
    assert (json.loads(printed) if wanted not in ("", "T") else printed) == wanted
    assert told.rendered("") == ("{}" if wanted == {} else "")
    assert told.is_shown == (wanted not in ("", {}))


@pytest.mark.parametrize(("client", "kind"), [pair for pair in EVERY if pair[0] != "windsurf"])
def test_payload_fields_are_read_under_every_clients_names(client: str, kind: str) -> None:
    """Behaviour 313."""
    told = parse(client, kind)
    assert told.dialect == client
    assert told.kind == kind
    assert told.cwd == Path("/home/ann/shop")
    assert told.session in {PAYLOADS[client][kind].get(key) for key in ("session_id", "sessionId")} | {
        PAYLOADS[client][kind].get("conversation_id")
    }
    assert told.prompt == ("Fix the failing test" if kind == "prompt" else None)
    assert not told.is_ignored


#: Clients whose payloads differ from those of Claude Code in a key.
MARKED = {"codex", "cursor", "copilot-cli", "vscode", "windsurf"}


@pytest.mark.parametrize(("client", "kind"), [pair for pair in EVERY if pair[0] in MARKED])
def test_payload_wins_over_the_option_of_the_command(client: str, kind: str) -> None:
    """Behaviour 313: Cursor and VS Code also run the hooks that are configured for Claude Code."""
    told = parse_payload(
        json.dumps(PAYLOADS[client][kind]).encode(), {"client": "claude-code", "event": "Stop"}
    )
    assert told.sender == told.dialect == client


def test_ambiguous_payload_belongs_to_the_client_of_the_option() -> None:
    """Behaviour 313: a session start of Gemini CLI looks like one of Claude Code or VS Code."""
    data = json.dumps(PAYLOADS["gemini-cli"]["start"]).encode()
    for typed, environment, dialect in (
        ({"client": "gemini-cli"}, {}, "gemini-cli"),
        ({"client": "my-client"}, {}, "claude-code"),
        ({}, {}, "claude-code"),
        ({}, {"GEMINI_SESSION_ID": "abc123"}, "gemini-cli"),
        ({}, {"GEMINI_SESSION_ID": "of another program"}, "claude-code"),
    ):
        assert parse_payload(data, typed, environment).dialect == dialect
    copilot = {"hook_event_name": "SessionStart", "session_id": "s", "timestamp": "2026-07-01T10:00:00.000Z"}
    told = parse_payload(json.dumps(copilot | {"cwd": "/w", "source": "startup"}).encode())
    assert (told.sender, told.rendered("T")) == ("copilot-cli", '{"additionalContext": "T"}')
    snake = {**PAYLOADS["vscode"]["start"], "hook_event_name": "SessionStart", "session_id": "s"}
    del snake["sessionId"], snake["hookEventName"]
    assert parse_payload(json.dumps(snake).encode(), {"client": "vscode"}).dialect == "vscode"


@pytest.mark.parametrize(("client", "variable"), [
    ("claude-code", "CLAUDE_PROJECT_DIR"), ("gemini-cli", "GEMINI_PROJECT_DIR"),
    ("cursor", "CURSOR_PROJECT_DIR"),
])  # fmt: skip
def test_missing_folder_is_taken_from_the_clients_variable(client: str, variable: str) -> None:
    found = PAYLOADS[client]["start"] | {"cwd": None, "workspace_roots": []}
    told = parse_payload(json.dumps(found).encode(), {"client": client}, {variable: "/home/ann/other"})
    assert told.cwd == Path("/home/ann/other")


@pytest.mark.parametrize("key", ["agent_id", "parentID"])
def test_hooks_of_subagents_stay_silent(key: str) -> None:
    """Behaviour 313: a subagent works with the context that its caller gives it."""
    for client, kind in EVERY:
        told = parse(client, kind, **{key: "sub-1"})
        assert not told.is_shown
        assert told.rendered("") in ("", "{}")


ODD: list[bytes] = [
    b"", b"{", b"{}", b"[]", b"null", b"7", b'"text"', b"\xff\xfe\x00", b"{" * 300_000, b"[" * 300_000,
    b'{"hook_event_name": ["SessionStart"], "session_id": 7, "cwd": {}, "prompt": [1]}',
    b'{"hook_event_name": "SessionStart", "cwd": "\\u0000", "session_id": "' + b"x" * 5_000 + b'"}',
    b'{"hook_event_name": "UserPromptSubmit", "prompt": "' + b"p" * 300_000 + b'"}',
    b'{"hook_event_name": "UserPromptSubmit", "prompt": "' + b"p" * LARGEST + b'"}',
    b'{"hook_event_name": "Stop", "turn_id": 1, "workspace_roots": [], "timestamp": "x", "sessionId": null}',
    b'{"hook_event_name": "SessionStart", "workspace_roots": [7, null]}',
    b"\xef\xbb\xbf" + b'{"hook_event_name": "SessionStart", "session_id": "\xe9"}',
    '{"hook_event_name": "SessionStart"}'.encode("utf-16"),
    b'{"sessionId": "s", "timestamp": NaN, "hookEventName": "UserPromptSubmit"}',
]  # fmt: skip


@pytest.mark.parametrize("data", ODD, ids=range(len(ODD)))
def test_odd_payload_still_gets_a_valid_answer(data: bytes) -> None:
    """Behaviour 313."""
    events = ("SessionStart", "preCompact", "Stop", "unknown", None)
    for client, event in product((*DIALECTS, "my-client", None), events):
        told = parse_payload(data, {"client": client, "event": event})
        for text in ("", "half \ud800 a pair"):
            printed = told.rendered(text)
            printed.encode()
            is_json = told.dialect not in (None, "claude-code")
            assert not printed or not is_json or isinstance(json.loads(printed), dict)
        assert told.session is None or isinstance(told.session, str)


def test_event_that_is_given_twice_is_answered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behaviour 313: a damaged file and a clock that was set back do not silence a hook."""
    path = tmp_path / "state" / "events"
    now = [1_000_000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    assert is_first(path, "brief", "s", "prompt", None, "a")
    assert not is_first(path, "brief", "s", "prompt", None, "a")
    for other in (("checkpoint", "s", "prompt", None, "a"), ("brief", "s", "prompt", None, "b")):
        assert is_first(path, *other)
    for now[0] in (1_000_006.0, 1_000_000.0):
        assert is_first(path, "brief", "s", "prompt", None, "a")
    for content in (b"", b"{", b"[]", b'{"a": "b", "c": null}', b"[" * 70_000):
        path.write_bytes(content)
        assert is_first(path, "brief", "s", "start", "startup", None)
    for number in range(MOST_EVENTS + 10):
        assert is_first(path, str(number))
    assert len(json.loads(path.read_bytes())) == MOST_EVENTS
    assert path.stat().st_size < 65_536
