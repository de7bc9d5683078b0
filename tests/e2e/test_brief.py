"""`lithos brief` and its hook. The hook is silent and quick after every error (behaviour 244)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lithos.server.command.hook_failsafe import DEADLINE
from tests.e2e.context_server import Stub, briefing, stub_server
from tests.e2e.hooks import BOUND, SILENT, Printed, Typist, make_typist, patient, started
from tests.e2e.owners import owning
from tests.e2e.process import START_BOUND, clean_environment, start_lithos, until

typist = pytest.fixture(make_typist)


@pytest.fixture
def stub(tmp_path: Path, typist: Typist) -> Iterator[Stub]:
    with stub_server(tmp_path / "data", typist) as found:
        yield found


def start_hook(data: Path, *arguments: str) -> Printed:
    return started(data, "brief", "--hook", *arguments)


def test_hook_prints_new_content_only_once_per_session(stub: Stub) -> None:
    """Behaviour 244: the next request sends the cursor of the session."""
    for session, since in (("a", None), ("a", "7"), ("b", None), ("a", "7")):
        done = stub.brief("--hook", "--session", session, "--agent", "claude@host")
        assert done == Printed(0, "# Briefing\n", "")
        call = stub.calls.pop()
        assert call.pop("since", None) == since
        assert call == {
            "query": stub.data.parent.name,
            "budget": 800,
            "agent_id": "claude@host",
            "cursor": True,
        }
    assert set(stub.tokens) == {"Bearer s3cret"}
    stub.answer = briefing("", cursor="9")
    stub.expect_silence("--session", "a")
    stub.brief("--hook", "--session", "a", "--since", "3")
    assert [call.get("since") for call in stub.calls] == ["7", "3"]


def test_compact_briefing_prints_its_sources_after_the_text(stub: Stub) -> None:
    stub.answer = {"text": "### [1] Mill\nIt grinds.", "sources": ["[1] id mill.md"], "tokens": 30}
    printed = "### [1] Mill\nIt grinds.\n\n## Sources\n\n[1] id mill.md\n"
    assert stub.brief("--hook", "mill") == Printed(0, printed, "")
    assert stub.brief("mill").out == printed
    assert stub.brief("--hook", "--session", "s", "mill") == Printed(0, printed, "")


def test_hook_query_names_its_own_project(stub: Stub, tmp_path: Path) -> None:
    """Behaviour 244: the query contains the repository name and the path in the repository."""
    below = tmp_path / "my-repository" / "src" / "deep"
    below.mkdir(parents=True)
    (tmp_path / "my-repository" / ".git").mkdir()
    stub.brief("--hook", cwd=below)
    stub.brief("--hook", "raft log", cwd=below)
    stub.brief("--hook", "--task", "t1", "--budget", "100", cwd=below)
    assert [(call.get("query"), call.get("task_id"), call["budget"]) for call in stub.calls] == [
        ("my-repository src deep", None, 800), ("raft log", None, 800), (None, "t1", 100)
    ]  # fmt: skip
    stub.brief("--hook", "--budget", "5000")
    assert stub.calls[-1]["budget"] == 800


def test_brief_finds_the_configured_data_directory(stub: Stub, typist: Typist, tmp_path: Path) -> None:
    config = tmp_path / "lithos.yaml"
    config.write_text(json.dumps({"storage": {"data_dir": str(stub.data)}}))
    for arguments, env in (
        (["-c", str(config)], {}),
        ([], {"LITHOS_DATA_DIR": str(stub.data)}),
        ([], {"LITHOS_STORAGE__DATA_DIR": str(stub.data), "LITHOS_DATA_DIR": "elsewhere"}),
        (["-d", "~/data"], {"HOME": str(tmp_path)}),
        ([], {}),  # ./data
    ):
        done = typist.typed(*arguments, "brief", "--hook", cwd=tmp_path, **env)
        assert done == Printed(0, "# Briefing\n", ""), (arguments, env)


def test_terminal_control_characters_are_printed_as_text(stub: Stub) -> None:
    """Behaviour 244."""
    stub.answer = briefing("# Red \x1b[31m\r\nline\u2028two \u202e ü\n")
    expected = "# Red \\x1b[31m\\r\nline\\u2028two \\u202e ü\n"
    assert stub.brief("--hook").out == expected
    assert stub.brief("red").out == expected


def test_hook_is_silent_when_the_answer_is_invalid(stub: Stub) -> None:
    """Behaviour 244: a hook prints at most 800 tokens."""
    answers: list[Any] = [
        briefing("x " * 2_000, tokens=1_000),
        briefing("x " * 2_000, tokens=800),  # claims 800 tokens, but 4,000 bytes are at least 1,000 tokens
        briefing("short", tokens=801),
        briefing() | {"text": None},
        briefing(tokens="many"),
        {"status": "error", "code": "invalid_input", "message": "no"},
        None,
        {},
    ]
    for stub.answer in answers:
        stub.expect_silence("--session", "a")
    assert len(stub.calls) == len(answers)


def test_hook_is_silent_after_an_unexpected_server_answer(stub: Stub) -> None:
    """Behaviour 244."""
    answers = [
        (200, b""),
        (200, b"not json"),
        (200, b"[]"),
        (200, b"[" * 100_000),
        (200, b'{"error": {"code": -32602, "message": "Unknown tool"}}'),
        (200, b'{"result": {"isError": true, "content": [{"text": "no"}]}}'),
        (200, b'"' + b"x" * 2_000_000 + b'"'),
        (401, b""),
        (500, b"{}"),
        (302, b""),
    ]
    for stub.status, stub.raw in answers:
        stub.expect_silence()
    assert len(stub.calls) == len(answers)


@pytest.mark.slow
def test_hook_waits_neither_for_a_slow_server_nor_another_hook(stub: Stub) -> None:
    """Behaviour 244: while the first hook hangs, a second hook prints nothing. It does not repeat the text.

    A hook that waited would print the late answer.
    """
    assert DEADLINE < BOUND
    stub.pause = threading.Event()

    def hook_asks() -> bool:
        assert started(stub.data, "brief", "--hook", "--session", "b", program=patient(5.0)) == SILENT
        return len(stub.calls) == 1

    until(hook_asks)
    done: list[Printed] = []
    first = threading.Thread(target=lambda: done.append(started(stub.data, "brief", "x", "--session", "a")))
    first.start()
    until(lambda: len(stub.calls) == 2)
    assert start_hook(stub.data, "--session", "a") == SILENT
    stub.pause.set()
    first.join(START_BOUND)
    assert [each.out for each in done] == ["# Briefing\n"]
    assert len(stub.calls) == 2


@pytest.mark.slow
def test_concurrent_hooks_of_one_session_print_only_once(stub: Stub) -> None:
    """Behaviour 244."""
    stub.tells_once = True
    done: list[Printed] = []
    hooks = [
        threading.Thread(target=lambda: done.append(start_hook(stub.data, "--session", "a")))
        for _ in range(6)
    ]
    for hook in hooks:
        hook.start()
    for hook in hooks:
        hook.join(START_BOUND)
    assert [each.code for each in done] == [0] * 6
    # At most one hook prints text. On a busy machine, all hooks may exceed their time limit.
    assert sum(each.out == "# Briefing\n" for each in done) <= 1
    assert {each.out for each in done} <= {"# Briefing\n", ""}
    assert started(stub.data, "brief", "x", "--session", "a").code == 0
    assert stub.brief("--hook", "--session", "a").out == ""


@pytest.mark.slow
def test_hook_does_not_wait_for_a_server_that_never_answers(tmp_path: Path) -> None:
    """Behaviour 244: the first connection is accepted but not answered.

    Later connections are not accepted.
    """
    data = tmp_path / "data"
    listener = socket.create_server(("127.0.0.1", 0), backlog=1)
    with listener, owning(data, f"http://127.0.0.1:{listener.getsockname()[1]}"):
        for _ in range(3):  # at the last attempt, the connection queue is full
            assert start_hook(data) == SILENT


@pytest.mark.slow
def test_hook_does_not_wait_for_an_endless_slow_answer(tmp_path: Path) -> None:
    """Behaviour 244: each byte arrives in time, but the answer does not end."""
    data = tmp_path / "data"
    stop = threading.Event()

    def drip(listener: socket.socket) -> None:
        peer, _ = listener.accept()
        with peer:
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")
            while not stop.wait(0.05):
                try:
                    peer.sendall(b" ")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        with owning(data, f"http://127.0.0.1:{listener.getsockname()[1]}"):
            assert start_hook(data) == SILENT
        stop.set()
        thread.join(60)


def test_hook_is_silent_when_no_server_runs(typist: Typist, tmp_path: Path) -> None:
    """Behaviour 244: covers a missing and an empty data directory, and all kinds of owner records."""
    data = tmp_path / "data"

    def expect_silence() -> None:
        assert typist(data, "brief", "--hook") == SILENT

    expect_silence()
    (data / ".lithos").mkdir(parents=True)
    expect_silence()
    lock = data / ".lithos" / "lock"
    for content in (b"", b"{", b"[]", b'{"url": 7}', b"\xff", b"[" * 70_000):
        lock.write_bytes(content)
        expect_silence()
    addresses = ("http://127.0.0.1:1", "no address", "http://[::1", "http://127.0.0.1:99999")
    for url in (None, *addresses, "http://no-such-host.invalid:80"):
        with owning(data, url):
            expect_silence()


def test_hook_ignores_another_program_on_a_dead_owners_port(
    stub: Stub, typist: Typist, tmp_path: Path
) -> None:
    """Behaviour 244: the owner record remains after a kill. Another program may then use its address."""
    left = tmp_path / "left" / "data"
    (left / ".lithos").mkdir(parents=True)
    record = json.loads((stub.data / ".lithos" / "lock").read_text())
    (left / ".lithos" / "lock").write_text(json.dumps(record))
    assert typist(left, "brief", "--hook") == SILENT
    assert stub.calls == []


def test_hook_is_silent_when_its_arguments_are_wrong(stub: Stub, typist: Typist) -> None:
    """Behaviour 244: with exit code 2, some clients would stop."""
    for words in ("--budget lots", "--budget 0", "--no-such-option", "one two"):
        stub.expect_silence(*words.split())
    for session in ("", "x" * 2_000):
        stub.expect_silence("--session", session)
    assert typist.typed("-c", "missing.yaml", "brief", "--hook", cwd=stub.data.parent) == SILENT
    assert stub.calls == []


def test_hook_is_silent_when_it_cannot_store_its_cursor(stub: Stub, tmp_path: Path) -> None:
    """Behaviour 244: without a stored cursor, the hook would repeat its output. Silence is better."""
    blocked = tmp_path / "a file"
    blocked.write_text("")
    stub.expect_silence("--session", "a", XDG_STATE_HOME=str(blocked))
    assert stub.calls == []


@pytest.mark.slow
def test_hook_ends_without_error_when_no_process_reads_its_output(stub: Stub) -> None:
    """Behaviour 244: output that was not read counts as not shown.

    Letters that the terminal cannot encode must not cause an error.
    """
    environment = clean_environment({"XDG_STATE_HOME": str(stub.data.parent / "state")})
    command = [*patient(START_BOUND), "-d", str(stub.data), "brief", "--hook", "--session", "a"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, timeout=START_BOUND, check=False, env=environment
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    stub.answer = briefing("# ü")
    read = subprocess.check_output(
        command, timeout=START_BOUND, env=environment | {"PYTHONIOENCODING": "ascii"}
    )
    assert read == b"# \\xfc\n"
    assert [call.get("since") for call in stub.calls] == [None, None]


def test_brief_command_shows_errors_to_a_person(stub: Stub, typist: Typist, tmp_path: Path) -> None:
    done = stub.brief("raft", "--task", "t", "--budget", "3000", "--since", "5")
    assert (done.code, done.out) == (0, "# Briefing\n")
    assert stub.calls == [{"query": "raft", "task_id": "t", "budget": 3000, "cursor": True, "since": "5"}]
    assert json.loads(stub.brief("raft", "--json").out) == stub.answer
    done = stub.brief()
    assert (done.code, "a QUERY, --task ID, or both" in done.err) == (2, True)
    stub.answer = {"status": "error", "code": "invalid_input", "message": "budget must be 200 or more."}
    assert stub.brief("raft") == Printed(1, "", "lithos: budget must be 200 or more.\n")
    nowhere = tmp_path / "nowhere"
    (nowhere / "knowledge").mkdir(parents=True)
    done = typist(nowhere, "brief", "raft")
    assert (done.code, done.out) == (1, "")
    assert f"Start a server with: lithos -d {nowhere} serve -t http" in done.err


def test_json_output_of_a_hook_contains_the_briefing_text(stub: Stub) -> None:
    done = stub.brief("--hook", "--json")
    assert json.loads(done.out) == {"text": "# Briefing", "tokens": 3, "cursor": "7"}


@pytest.mark.slow
def test_hook_prints_no_error_with_running_or_killed_server(tmp_path: Path) -> None:
    """Behaviour 244."""
    data = tmp_path / "data"
    server = start_lithos(data)
    try:
        done = start_hook(data, "--session", "a")
        assert (done.code, done.err) == (0, "")
        server.kill()
    finally:
        server.close()
    assert start_hook(data, "--session", "b") == SILENT
