"""`lithos brief`, and its hook: silent and quick whatever is wrong (behaviour 244)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from tests.e2e.owners import owning
from tests.e2e.process import LITHOS, clean_environment, running_lithos, start_lithos

#: Seconds that a hook may take (docs/spec/integration.md §2).
BOUND = 1.0


def briefing(text: str = "# Briefing", **more: Any) -> dict[str, Any]:
    """An answer of `lithos_context`."""
    return {
        "text": text, "tokens": len(text) // 4 + 1, "budget": 800, "items": [], "dropped": [], "warnings": [],
        "cursor": "7", "receipt_id": "r", "degraded": False,
    } | more  # fmt: skip


@define
class Stub:
    """A server that owns a data directory and knows one tool."""

    data: Path
    answer: Any = field(factory=briefing)
    #: Sent as it is in the place of an answer.
    raw: bytes | None = None
    status: int = 200
    pause: threading.Event | None = None
    #: Nothing has changed since any cursor.
    tells_once: bool = False
    calls: list[dict[str, Any]] = field(factory=list)
    tokens: list[str | None] = field(factory=list)

    def take(self, message: Mapping[str, Any], authorization: str | None) -> bytes:
        assert (message["method"], message["params"]["name"]) == ("tools/call", "lithos_context")
        self.calls.append(dict(message["params"]["arguments"]))
        self.tokens.append(authorization)
        if self.pause is not None:
            self.pause.wait(10)
        if self.raw is not None:
            return self.raw
        if self.tells_once and "since" in self.calls[-1]:
            self.answer = briefing("", cursor="8")
        result = {"structuredContent": self.answer, "content": [], "isError": False}
        return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()


def serve(stub: Stub) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            body = stub.take(json.loads(self.rfile.read(size)), self.headers.get("Authorization"))
            try:
                self.send_response(stub.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                self.close_connection = True  # the hook did not wait

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[Stub]:
    found = Stub(tmp_path / "data")
    server = serve(found)
    with owning(found.data, f"http://127.0.0.1:{server.server_port}"):
        yield found
    if found.pause is not None:
        found.pause.set()
    server.shutdown()
    server.server_close()


@define
class Printed:
    code: int
    out: str
    err: str
    seconds: float


def brief(data: Path, *arguments: str, cwd: Path | None = None, **env: str) -> Printed:
    state = {"XDG_STATE_HOME": str(data.parent / "state")}
    began = time.perf_counter()
    done = subprocess.run(
        [*LITHOS, "-d", str(data), "brief", *arguments],
        capture_output=True, text=True, env=clean_environment(state | env), cwd=cwd or data.parent,
        stdin=subprocess.DEVNULL, timeout=30, check=False,
    )  # fmt: skip
    return Printed(done.returncode, done.stdout, done.stderr, time.perf_counter() - began)


def expect_silence(data: Path, *arguments: str, **env: str) -> None:
    done = brief(data, "--hook", *arguments, **env)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert done.seconds < BOUND


def test_a_hook_prints_what_is_new_once_per_session(stub: Stub) -> None:
    """Behaviour 244: the cursor of each session goes with the next question."""
    for session, since in (("a", None), ("a", "7"), ("b", None), ("a", "7")):
        done = brief(stub.data, "--hook", "--session", session, "--agent", "claude@host")
        assert (done.code, done.out, done.err) == (0, "# Briefing\n", "")
        assert done.seconds < BOUND
        call = stub.calls.pop()
        assert call.pop("since", None) == since
        assert call == {"query": stub.data.parent.name, "budget": 800, "agent_id": "claude@host"}
    assert set(stub.tokens) == {"Bearer s3cret"}
    stub.answer = briefing("", cursor="9")
    expect_silence(stub.data, "--session", "a")
    brief(stub.data, "--hook", "--session", "a", "--since", "3")
    assert [call.get("since") for call in stub.calls] == ["7", "3"]


def test_a_hook_asks_about_the_project_it_runs_in(stub: Stub, tmp_path: Path) -> None:
    """Behaviour 244: by repository name and path."""
    below = tmp_path / "my-repository" / "src" / "deep"
    below.mkdir(parents=True)
    (tmp_path / "my-repository" / ".git").mkdir()
    brief(stub.data, "--hook", cwd=below)
    brief(stub.data, "--hook", "raft log", cwd=below)
    brief(stub.data, "--hook", "--task", "t1", "--budget", "100", cwd=below)
    assert [(call.get("query"), call.get("task_id"), call["budget"]) for call in stub.calls] == [
        ("my-repository src deep", None, 800), ("raft log", None, 800), (None, "t1", 100)
    ]  # fmt: skip
    brief(stub.data, "--hook", "--budget", "5000")
    assert stub.calls[-1]["budget"] == 800


def test_a_data_directory_is_found_as_the_configuration_says(stub: Stub, tmp_path: Path) -> None:
    config = tmp_path / "lithos.yaml"
    config.write_text(json.dumps({"storage": {"data_dir": str(stub.data)}}))
    for arguments, env in (
        (["-c", str(config)], {}),
        ([], {"LITHOS_DATA_DIR": str(stub.data)}),
        ([], {"LITHOS_STORAGE__DATA_DIR": str(stub.data), "LITHOS_DATA_DIR": "elsewhere"}),
        (["-d", "~/data"], {"HOME": str(tmp_path)}),
        ([], {}),  # ./data
    ):
        done = subprocess.run(
            [*LITHOS, *arguments, "brief", "--hook"],
            capture_output=True, text=True, cwd=tmp_path, env=clean_environment(env), timeout=30, check=True,
        )  # fmt: skip
        assert (done.stdout, done.stderr) == ("# Briefing\n", ""), (arguments, env)


def test_what_steers_a_terminal_is_printed_as_text(stub: Stub) -> None:
    """Behaviour 244."""
    stub.answer = briefing("# Red \x1b[31m\r\nline\u2028two \u202e ü\n")
    expected = "# Red \\x1b[31m\\r\nline\\u2028two \\u202e ü\n"
    assert brief(stub.data, "--hook").out == expected
    assert brief(stub.data, "red").out == expected
    assert brief(stub.data, "--hook", PYTHONIOENCODING="ascii").out == expected.replace("ü", "\\xfc")


@pytest.mark.parametrize(
    "answer",
    [
        briefing("x " * 2_000, tokens=1_000),
        briefing("x " * 2_000, tokens=800),  # it says so, but 4 bytes are a token at least
        briefing("short", tokens=801),
        briefing() | {"text": None},
        briefing(tokens="many"),
        {"status": "error", "code": "invalid_input", "message": "no"},
        None,
        {},
    ],
)
def test_a_hook_is_silent_when_the_answer_is_too_large_or_of_another_shape(stub: Stub, answer: Any) -> None:
    """Behaviour 244: at most 800 tokens."""
    stub.answer = answer
    expect_silence(stub.data, "--session", "a")
    assert len(stub.calls) == 1


@pytest.mark.parametrize(
    ("status", "raw"),
    [
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
    ],
)
def test_a_hook_is_silent_when_the_server_answers_otherwise(stub: Stub, status: int, raw: bytes) -> None:
    """Behaviour 244."""
    stub.status, stub.raw = status, raw
    expect_silence(stub.data)


def test_a_hook_does_not_wait_for_a_slow_server(stub: Stub) -> None:
    """Behaviour 244."""
    stub.pause = threading.Event()
    expect_silence(stub.data, "--session", "a")
    assert len(stub.calls) == 1


def test_a_hook_does_not_wait_for_another_of_its_session(stub: Stub) -> None:
    """Behaviour 244: the first one is stuck; a second says nothing rather than the same."""
    stub.pause = threading.Event()
    done: list[Printed] = []
    first = threading.Thread(target=lambda: done.append(brief(stub.data, "x", "--session", "a")))
    first.start()
    until = time.monotonic() + 10
    while not stub.calls:
        assert time.monotonic() < until
        time.sleep(0.01)
    expect_silence(stub.data, "--session", "a")
    stub.pause.set()
    first.join(20)
    assert [each.out for each in done] == ["# Briefing\n"]
    assert len(stub.calls) == 1


def test_hooks_of_one_session_at_once_do_not_tell_the_same(stub: Stub) -> None:
    """Behaviour 244."""
    stub.tells_once = True
    done: list[Printed] = []
    hooks = [
        threading.Thread(target=lambda: done.append(brief(stub.data, "--hook", "--session", "a")))
        for _ in range(6)
    ]
    for hook in hooks:
        hook.start()
    for hook in hooks:
        hook.join(30)
    assert [each.code for each in done] == [0] * 6
    assert sum(each.out == "# Briefing\n" for each in done) <= 1  # a busy machine may leave time for none
    assert {each.out for each in done} <= {"# Briefing\n", ""}
    assert brief(stub.data, "x", "--session", "a").code == 0
    told = brief(stub.data, "--hook", "--session", "a")
    assert told.out == ""


def test_a_hook_does_not_wait_for_a_socket_that_says_nothing(tmp_path: Path) -> None:
    """Behaviour 244: a connection that is accepted and then forgotten, and one that is never accepted."""
    data = tmp_path / "data"
    listener = socket.create_server(("127.0.0.1", 0), backlog=1)
    with listener, owning(data, f"http://127.0.0.1:{listener.getsockname()[1]}"):
        expect_silence(data)
        expect_silence(data)
        expect_silence(data)  # by now the queue is full: not even connected


def test_a_hook_does_not_wait_for_a_server_that_drips(tmp_path: Path) -> None:
    """Behaviour 244: each byte in time, the answer never."""
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
            expect_silence(data)
        stop.set()
        thread.join(10)


def test_a_hook_is_silent_without_a_server(tmp_path: Path) -> None:
    """Behaviour 244: no data directory, an empty one, a record of whatever kind."""
    data = tmp_path / "data"
    expect_silence(data)
    (data / ".lithos").mkdir(parents=True)
    expect_silence(data)
    lock = data / ".lithos" / "lock"
    for content in (b"", b"{", b"[]", b'{"url": 7}', b"\xff", b"[" * 70_000):
        lock.write_bytes(content)
        expect_silence(data)
    with owning(data, None):
        expect_silence(data)
    with owning(data, "http://127.0.0.1:1"):
        expect_silence(data)  # refused
    for url in ("no address", "http://[::1", "http://127.0.0.1:99999", "http://no-such-host.invalid:80"):
        with owning(data, url):
            expect_silence(data)


def test_a_hook_does_not_speak_to_whoever_has_the_port_of_a_dead_owner(stub: Stub, tmp_path: Path) -> None:
    """Behaviour 244: the record stayed after a kill; its address may be somebody else's now."""
    left = tmp_path / "left" / "data"
    (left / ".lithos").mkdir(parents=True)
    record = json.loads((stub.data / ".lithos" / "lock").read_text())
    (left / ".lithos" / "lock").write_text(json.dumps(record))
    expect_silence(left)
    assert stub.calls == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--budget", "lots"],
        ["--budget", "0"],
        ["--no-such-option"],
        ["one", "two"],
        ["--session", ""],
        ["--session", "x" * 2_000],
        ["-c", "missing.yaml"],
    ],
)
def test_a_hook_is_silent_when_it_is_called_wrongly(stub: Stub, arguments: list[str]) -> None:
    """Behaviour 244: exit code 2 would stop some clients."""
    if arguments[0] == "-c":
        done = subprocess.run(
            [*LITHOS, *arguments, "brief", "--hook"],
            capture_output=True, text=True, env=clean_environment(), timeout=30, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    else:
        expect_silence(stub.data, *arguments)
    assert stub.calls == []


def test_a_hook_is_silent_where_it_cannot_remember(stub: Stub, tmp_path: Path) -> None:
    """Behaviour 244: better nothing than the same again and again."""
    blocked = tmp_path / "a file"
    blocked.write_text("")
    expect_silence(stub.data, "--session", "a", XDG_STATE_HOME=str(blocked))
    assert stub.calls == []


def test_a_hook_whose_reader_has_gone_ends_quietly(stub: Stub) -> None:
    """Behaviour 244: and what nobody read counts as not told."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*LITHOS, "-d", str(stub.data), "brief", "--hook", "--session", "a"],
        stdout=writer, stderr=subprocess.PIPE, timeout=30, check=False,
        env=clean_environment({"XDG_STATE_HOME": str(stub.data.parent / "state")}),
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    assert brief(stub.data, "--hook", "--session", "a").out == "# Briefing\n"
    assert [call.get("since") for call in stub.calls] == [None, None]


def test_a_person_is_told_what_is_wrong(stub: Stub, tmp_path: Path) -> None:
    done = brief(stub.data, "raft", "--task", "t", "--budget", "3000", "--since", "5")
    assert (done.code, done.out) == (0, "# Briefing\n")
    assert stub.calls == [{"query": "raft", "task_id": "t", "budget": 3000, "since": "5"}]
    done = brief(stub.data, "raft", "--json")
    assert json.loads(done.out) == stub.answer
    done = brief(stub.data)
    assert (done.code, "a QUERY, --task ID, or both" in done.err) == (2, True)
    stub.answer = {"status": "error", "code": "invalid_input", "message": "budget must be 200 or more."}
    done = brief(stub.data, "raft")
    assert (done.code, done.out, done.err) == (1, "", "lithos: budget must be 200 or more.\n")
    nowhere = tmp_path / "nowhere"
    (nowhere / "knowledge").mkdir(parents=True)
    done = brief(nowhere, "raft")
    assert (done.code, done.out) == (1, "")
    assert f"Start it with: lithos -d {nowhere} serve -t http" in done.err


def test_what_is_told_as_json_to_a_hook_is_its_text(stub: Stub) -> None:
    done = brief(stub.data, "--hook", "--json")
    assert json.loads(done.out) == {"text": "# Briefing", "tokens": 3, "cursor": "7"}


def test_a_hook_is_quick_beside_a_real_server_and_after_its_death(tmp_path: Path) -> None:
    """Behaviour 244."""
    data = tmp_path / "data"
    with running_lithos(data):
        done = brief(data, "--hook", "--session", "a")
        assert (done.code, done.err) == (0, "")
        assert done.seconds < BOUND
    server = start_lithos(data)
    server.kill()
    server.close()
    expect_silence(data, "--session", "b")
