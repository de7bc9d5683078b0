"""The hook at the start of a session, in the form of each client (behaviours 313 and 315)."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lithos.clients.hooks import prompting
from lithos.clients.hooks.session_start import HEAD
from lithos.search.embedding.tokenizer import load_pieces
from lithos.server.command.hook_failsafe import HOOK_BUDGET
from lithos.text.words.tokens import count_with
from tests.clients.hooks.test_dialects import EVENTS, PAYLOADS
from tests.e2e.context_server import Stub, briefing, stub_server
from tests.e2e.hooks import SILENT, Printed, Typist, make_typist, patient, started
from tests.e2e.owners import owning
from tests.e2e.process import until

SECTIONS = ["pinned", "work", "warnings", "notes", "activity"]
BRIEFING = f"{HEAD}\n\n# Briefing"
START = [client for client in PAYLOADS if client != "windsurf"]
typist = pytest.fixture(make_typist)


@pytest.fixture
def stub(tmp_path: Path, typist: Typist) -> Iterator[Stub]:
    with stub_server(tmp_path / "data", typist) as found:
        yield found


def payload(client: str, kind: str = "start", **changed: Any) -> str:
    return json.dumps(PAYLOADS[client][kind] | changed)


def options(client: str, kind: str = "start") -> list[str]:
    event = EVENTS.get(client, {}).get(kind)
    return ["brief", "--hook", "--client", client, *(["--event", event] if event else [])]


def start(typist: Typist, data: Path, client: str, kind: str = "start", **changed: Any) -> str:
    """Run the hook. Return the text for the model, after a check that only JSON was printed."""
    done = typist(data, *options(client, kind), told=payload(client, kind, **changed))
    assert (done.code, done.err) == (0, "")
    return text_in(done.out)


def text_in(printed: str) -> str:
    if not printed.strip():
        return ""
    answer = json.loads(printed)
    answer = answer.get("hookSpecificOutput", answer)
    found = {key: answer[key] for key in ("additionalContext", "additional_context") if key in answer}
    (text,) = found.values()
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("client", START)
def test_session_start_gets_a_briefing_of_the_project(
    client: str, stub: Stub, typist: Typist, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 313: each client's start asks once, names project and session, and gets its own form."""
    keys = ModuleType("lithos.server.mcp.working_project")
    monkeypatch.setattr(keys, "project_of", lambda folder: "github.com/acme/shöp", raising=False)
    monkeypatch.setitem(sys.modules, keys.__name__, keys)
    stub.answer = briefing("Notes \x1b of ü", pending_proposals=2)
    text = start(typist, stub.data, client)
    waiting = "2 changes are waiting for a person's approval (lithos proposals)."
    assert text == f"{HEAD}\n\nNotes \\x1b of ü\n\n{waiting}"
    (call,), (headers,) = stub.calls, stub.headers
    assert call.pop("agent_id").startswith(f"{client}@")
    assert call == {"budget": HOOK_BUDGET, "cursor": True, "sections": SECTIONS}
    assert headers["Lithos-Project"].encode("latin-1").decode() == "github.com/acme/shöp"
    found = PAYLOADS[client]["start"]
    assert headers["Lithos-Session"] in (found.get("session_id"), found.get("sessionId"))


def test_known_agent_gets_only_changes_since_its_last_session(stub: Stub, typist: Typist) -> None:
    """Behaviour 313: a shortened or cleared conversation gets everything again."""
    for session, source, answered, since in (
        ("a", "startup", "7", None),
        ("b", "startup", "9", "7"),
        ("a", "resume", "11", "7"),
        ("b", "compact", "12", None),
        ("b", "clear", "13", None),
        ("c", "startup", "14", "13"),
    ):
        stub.answer = briefing(cursor=answered)
        assert start(typist, stub.data, "claude-code", session_id=session, source=source) == BRIEFING
        assert stub.calls[-1].get("since") == since, session
    start(typist, stub.data, "codex", session_id="d")
    assert "since" not in stub.calls[-1]  # another agent


def test_head_line_stays_within_the_budget(stub: Stub, typist: Typist) -> None:
    """Behaviour 244: with its first line, a briefing has at most 800 tokens."""
    for tokens, text in ((HOOK_BUDGET - 30, BRIEFING), (HOOK_BUDGET - 29, "# Briefing")):
        stub.answer = briefing(tokens=tokens)
        assert start(typist, stub.data, "claude-code", session_id=str(tokens)) == text
    assert count_with(load_pieces())(f"{HEAD}\n\n") <= 30


def test_event_of_two_configurations_is_answered_once(stub: Stub, typist: Typist) -> None:
    """Behaviour 313: Cursor also runs the hooks that are configured for Claude Code."""
    told = payload("cursor", source="startup")
    first = typist(stub.data, *options("cursor"), told=told)
    again = typist(stub.data, *options("claude-code"), "--event", "SessionStart", told=told)
    assert (text_in(first.out), again) == (BRIEFING, SILENT)
    assert len(stub.calls) == 1


def test_older_server_is_asked_with_a_question(
    stub: Stub, typist: Typist, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may have been started before an update, and refuses new sections then."""
    refusal = {"status": "error", "code": "invalid_input", "message": "sections may contain task"}
    take = stub.take

    def answer(message: Any, headers: Any) -> bytes:
        stub.answer = refusal if "sections" in message["params"]["arguments"] else briefing()
        return take(message, headers)

    monkeypatch.setattr(Stub, "take", staticmethod(answer))
    assert start(typist, stub.data, "claude-code") == BRIEFING
    assert [set(call) & {"query", "sections"} for call in stub.calls] == [{"sections"}, {"query"}]


@pytest.mark.parametrize("client", START)
def test_unreachable_server_is_named_in_one_line(client: str, tmp_path: Path, typist: Typist) -> None:
    """Behaviour 315: only at the start of a session, and only for a client."""
    data = tmp_path / "data"
    line = "Lithos is not reachable at {}: memory is off in this session."
    assert start(typist, data, client) == line.format(data)
    with owning(data, "http://127.0.0.1:1"):
        assert start(typist, data, client, source="again") == line.format("http://127.0.0.1:1")
    for kind in ("prompt", "compaction", "end"):
        assert typist(data, *options(client, kind), told=payload(client, kind)).out in ("", "{}\n")
    assert typist(data, "brief", "--hook", "--client", client) == SILENT


def test_stopped_server_is_named_by_its_address(tmp_path: Path, typist: Typist) -> None:
    """Behaviour 315: an address that other programs may use now is named, but not called."""
    lock = tmp_path / "data" / ".lithos" / "lock"
    lock.parent.mkdir(parents=True)
    record = {
        "pid": 1,
        "host": "h",
        "started_at": "2026-01-01T00:00:00+00:00",
        "url": "http://127.0.0.1:8765",
    }
    lock.write_text(json.dumps(record))
    assert "at http://127.0.0.1:8765: memory" in start(typist, tmp_path / "data", "codex")
    lock.write_text(json.dumps(record | {"private": True}))
    assert f"at {tmp_path / 'data'}: memory" in start(typist, tmp_path / "data", "codex", source="again")


def test_server_that_is_starting_is_not_called_unreachable(tmp_path: Path, typist: Typist) -> None:
    """Behaviour 315: a client that starts the server over stdio runs its hooks at the same moment."""
    with owning(tmp_path / "data", None):
        assert start(typist, tmp_path / "data", "claude-code") == ""


@pytest.mark.parametrize("client", START)
def test_client_that_starts_the_server_gets_no_line(client: str, tmp_path: Path, typist: Typist) -> None:
    """Behaviour 315: the server and the first hook start at the same moment."""
    data, home = tmp_path / "data", tmp_path / "home"
    home.mkdir()
    places: dict[str, Any] = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}
    for transport in ("http", "stdio"):
        done = typist(data, "connect", client, "--write", "--transport", transport, **places)
        assert done.code == 0
        told = payload(client, source=transport)
        done = typist(data, *options(client), told=told, **places)
        assert ("not reachable" in done.out) == (transport == "http")
    done = typist(data, *options(client), "--quiet", told=payload(client, source="quiet"))
    assert done == SILENT


def test_failed_answer_leaves_the_session_start_silent(stub: Stub, typist: Typist) -> None:
    """Behaviour 315: a server that answers is reachable, whatever it answers."""
    for number, (stub.status, stub.raw) in enumerate(((500, b"{}"), (401, b""), (200, b"not json"))):
        assert start(typist, stub.data, "claude-code", source=str(number)) == ""
    assert len(stub.calls) == 3


@pytest.mark.slow
def test_server_that_never_answers_is_named_within_the_time_limit(tmp_path: Path) -> None:
    """Behaviour 315."""
    data = tmp_path / "data"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with owning(data, url):
            done = started(
                data, *options("gemini-cli"), told=payload("gemini-cli").encode(), program=patient(3.0)
            )
    assert done.code == 0
    assert text_in(done.out) == f"Lithos is not reachable at {url}: memory is off in this session."
    assert done.err == ""


@pytest.mark.slow
def test_slow_server_is_not_called_unreachable(stub: Stub) -> None:
    """Behaviour 315: a server that answers simple requests has only too much to do."""
    stub.pause = threading.Event()

    def hook_asks() -> bool:
        told = payload("codex", source=f"{len(stub.calls)}").encode()
        done = started(stub.data, *options("codex"), told=told, program=patient(3.0))
        return done == SILENT and bool(stub.calls)

    until(hook_asks)


@pytest.mark.parametrize("client", [each for each in START if each != "copilot-cli"])
def test_prompt_is_passed_to_the_prompt_hook(
    client: str, stub: Stub, typist: Typist, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 313: the answer has the client's form, and a subagent gets none."""
    asked = []

    def run(told: Any, owner: Any, typed: Any) -> str:
        asked.append((told.prompt, owner.url, typed["client"]))
        return "A passage"

    monkeypatch.setattr(prompting, "run", run)
    assert start(typist, stub.data, client, "prompt") == "A passage"
    assert start(typist, stub.data, client, "prompt", agent_id="sub") == ""
    done = typist(stub.data, *options("claude-code"), told=payload("cursor", "prompt", prompt="Why?"))
    assert text_in(done.out) == "A passage"
    assert [(prompt, name) for prompt, _, name in asked] == [
        ("Fix the failing test", client),
        ("Why?", "cursor"),
    ]


def test_checkpoint_hook_stays_silent_where_no_model_reads(stub: Stub, typist: Typist) -> None:
    """Behaviour 313: Codex expects an object at the end of a turn, and other clients ignore the output."""
    for client in START:
        for kind in ("compaction", "end"):
            done = typist(stub.data, "checkpoint", *options(client, kind)[1:], told=payload(client, kind))
            wanted = {("codex", "end"): "{}\n"}.get((client, kind), "")
            is_reminder = kind == "compaction" and client in ("claude-code", "opencode")
            assert is_reminder or done == Printed(0, wanted, ""), client
    assert stub.calls == []


@pytest.mark.slow
def test_twenty_hooks_at_once_print_one_answer(tmp_path: Path, typist: Typist) -> None:
    """Behaviour 313."""
    data, done = tmp_path / "data", list[str]()
    told = payload("claude-code").encode()
    hooks = [
        threading.Thread(target=lambda: done.append(started(data, *options("claude-code"), told=told).out))
        for _ in range(20)
    ]
    for hook in hooks:
        hook.start()
    for hook in hooks:
        hook.join(60)
    assert len(done) == 20
    assert sum(out != "" for out in done) <= 1
