"""`lithos checkpoint`: what a session learned is kept once; its hook is silent and quick (behaviour 244)."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lithos.cli.checkpoint.storing import LONGEST_TEXT, MOST
from tests.e2e.owners import owning
from tests.e2e.process import LITHOS, clean_environment, running_lithos
from tests.e2e.test_brief import BOUND, Printed

TOKENS = 800


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data directory of a running server."""
    folder = tmp_path_factory.mktemp("checkpoints") / "data"
    with running_lithos(folder):
        yield folder


def run(data: Path, *arguments: str, told: str | bytes = b"", cwd: Path | None = None, **env: str) -> Printed:
    began = time.perf_counter()
    done = subprocess.run(
        [*LITHOS, "-d", str(data), *arguments],
        input=told.encode() if isinstance(told, str) else told, capture_output=True, timeout=30, check=False,
        env=clean_environment(env), cwd=cwd or data.parent,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    return Printed(done.returncode, done.stdout.decode(), done.stderr.decode(), seconds)


def hook(data: Path, *arguments: str, told: str | bytes = b"", **env: str) -> str:
    """What the hook prints; it keeps its promises whatever that is."""
    for _ in range(3):  # where others use the processors, too, one of three shows how long it takes
        done = run(data, "checkpoint", "--hook", *arguments, told=told, **env)
        assert (done.code, done.err) == (0, "")
        if done.seconds < BOUND:
            break
    assert done.seconds < BOUND
    assert len(done.out.encode()) <= TOKENS * 4
    return done.out


def words(data: Path, *arguments: str, told: str | bytes = b"") -> str:
    """What the hook says; on a busy machine it may have no time for it at once."""
    return next(filter(None, (hook(data, *arguments, told=told) for _ in range(5))), "")


def keep(data: Path, session: str, text: str, *arguments: str, told: str = "") -> None:
    """Have the hook keep the text in the session's note, and say nothing; again where time was short."""
    for _ in range(5):
        assert hook(data, *arguments, told=told) == ""
        if any(text in note for note in notes(data, session)):
            return
    raise AssertionError(f"{text!r} was not kept")


def event(name: str, **more: Any) -> str:
    """What Claude Code writes to its hooks."""
    told = {"session_id": "s1", "transcript_path": "/tmp/t.jsonl", "cwd": "/", "hook_event_name": name}
    return json.dumps(told | more)


def notes(data: Path, session: str) -> list[str]:
    """The notes of a session."""
    found = (data / "knowledge" / "checkpoints").glob(f"{session}-*.md")
    return [path.read_text() for path in found]


def test_a_session_has_one_note_and_each_text_in_it_once(data: Path, tmp_path: Path) -> None:
    (tmp_path / "my-repository" / ".git").mkdir(parents=True)
    below = tmp_path / "my-repository" / "src"
    below.mkdir()
    arguments = ("checkpoint", "--session", "Once.1", "--agent", "claude-code@host")
    first = run(data, *arguments, "--text", "# Learned\nRaft needs a majority.", cwd=below)
    assert (first.code, first.err) == (0, "")
    assert first.out.startswith("Stored in checkpoints/once-1-")
    again = run(data, *arguments, "--text", "# Learned\nRaft needs a majority.\n")
    assert (again.code, again.out.split(";")[1]) == (0, " nothing was changed.\n")
    (tmp_path / "more.md").write_text("Paxos, too.\n")
    assert "(version 2)" in run(data, *arguments, str(tmp_path / "more.md")).out
    stored = json.loads(run(data, "--json", *arguments, told="From a pipe.").out)
    assert (stored["status"], stored["version"]) == ("stored", 3)
    (note,) = notes(data, "once-1")
    assert "Checkpoint of my-repository, 20" in note
    for part in ("author: claude-code@host", "session: Once.1", "- checkpoint", "- my-repository"):
        assert part in note
    assert note.count("Raft needs a majority.") == 1
    assert [line for line in note.splitlines() if line.startswith("##")][1] == "### Learned"
    assert note.index("Raft") < note.index("Paxos, too.") < note.index("From a pipe.")


def test_without_a_session_the_note_is_the_agents_of_the_day(data: Path) -> None:
    for text in ("one", "two"):
        assert run(data, "checkpoint", "--client", "my-client", "--text", text).code == 0
    (note,) = notes(data, f"my-client-{os.uname().nodename.partition('.')[0].lower()}")
    assert "one" in note
    assert "two" in note


def test_who_keeps_it_is_the_same_in_each_session(data: Path) -> None:
    """docs/spec/integration.md §2: `--agent`, else `<client>@<host>`."""
    host = os.uname().nodename.partition(".")[0]
    for session, environment in (("who-a", {"CLAUDECODE": "1"}), ("who-b", {"CLAUDE_PROJECT_DIR": "/"})):
        assert run(data, "checkpoint", "--session", session, "--text", "x", **environment).code == 0
        (note,) = notes(data, session)
        assert f"author: claude-code@{host}\n" in note


def test_checkpoints_of_one_session_at_once_are_all_kept(data: Path) -> None:
    texts = ["same", "same", "one", "two"]
    threads = [
        threading.Thread(target=run, args=(data, "checkpoint", "--session", "at-once", "--text", text))
        for text in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    (note,) = notes(data, "at-once")
    lines = note.splitlines()
    assert [lines.count(text) for text in ("same", "one", "two")] == [1, 1, 1]


def test_a_note_has_a_bounded_number_of_checkpoints(data: Path) -> None:
    path = next(iter(run(data, "checkpoint", "--session", "full", "--text", "0").out.split()[2:3]))
    file = data / "knowledge" / path
    more = "".join(f"\n## 2026-01-01 00:00:00 UTC ({number:012x})\n\nx\n" for number in range(MOST))
    file.write_text(file.read_text() + more)
    assert run(data, "wait", "--types", "note.updated", "--since", "0", "--timeout", "20").code == 0
    full = run(data, "checkpoint", "--session", "full", "--text", "late")
    assert (full.code, f"has {MOST} checkpoints" in full.err) == (1, True)
    assert hook(data, "--session", "full", told="late") == ""
    assert "late" not in file.read_text()


def test_a_person_is_told_what_is_wrong(data: Path, tmp_path: Path) -> None:
    for arguments, words in (
        (("--text", "  "), "There is no text to keep"),
        (("--text", "x", "file"), "not both"),
        ((str(tmp_path / "none"),), "Cannot read"),
        (("--text", "x", "--session", ""), "1 to 1,000 characters"),
        (("--text", "x" * (LONGEST_TEXT + 1)), "at most 16,000 characters"),
    ):
        done = run(data, "checkpoint", *arguments)
        assert (done.code, done.out, words in done.err) == (2, "", True), done
    done = run(tmp_path / "nowhere", "checkpoint", "--text", "x")
    assert (done.code, "No server owns" in done.err) == (1, True)


def test_a_hook_reminds_where_its_words_reach_the_model(data: Path) -> None:
    """Behaviour 244: plain text, since JSON is refused before a compaction."""
    before = words(data, told=event("PreCompact", trigger="auto"))
    after = words(data, told=event("SessionStart"))
    assert before.startswith("Keep in the summary")
    assert after.startswith("The conversation was shortened.")
    assert "lithos_write" in words(data)
    assert hook(data, told=event("SessionEnd", reason="clear")) == ""
    assert json.loads(words(data, "--json")).keys() == {"text"}
    assert notes(data, "s1") == []


def test_a_hook_keeps_the_text_it_is_given_and_says_nothing(data: Path, tmp_path: Path) -> None:
    """Behaviour 244."""
    told = event("PostCompact", session_id="given", compact_summary="The summary.", cwd=str(tmp_path))
    for _ in range(2):
        keep(data, "given", "The summary.", "--client", "claude-code", told=told)
    keep(data, "given", "Plain text.", "--session", "given", told="Plain text.")
    keep(data, "given", "Typed.", "--session", "given", "--text", "Typed.")
    (tmp_path / "kept.md").write_text("From a file.")
    keep(
        data, "given", "From a file.", str(tmp_path / "kept.md"), told=event("SessionEnd", session_id="given")
    )
    assert hook(data, str(tmp_path / "none.md"), told=event("SessionEnd", session_id="given")) == ""
    (note,) = notes(data, "given")
    assert "author: claude-code@" in note
    assert f"Checkpoint of {tmp_path.name}, " in note
    for text in ("The summary.", "Plain text.", "Typed.", "From a file."):
        assert note.splitlines().count(text) == 1


def test_a_hook_cuts_what_is_too_long(data: Path) -> None:
    keep(data, "long", "word", "--session", "long", told="word " * 20_000)
    (note,) = notes(data, "long")
    assert "(Cut: the first 16,000 of 99,999 characters.)" in note
    assert len(note) < LONGEST_TEXT + 1_000


@pytest.mark.parametrize(
    "told",
    [b"{", b"{" * 5_000, b"\xff\xfe\x00", b"[1]", b'{"session_id": 7, "cwd": ["x"], "hook_event_name": {}}',
     b'{"cwd": "\\u0000", "session_id": "' + b"x" * 5_000 + b'"}', b'{"compact_summary": "x'],
)  # fmt: skip
def test_a_hook_bears_what_a_client_tells_wrongly(data: Path, told: bytes) -> None:
    """Behaviour 244."""
    hook(data, "--session", "wrongly", told=told)


def test_a_hook_does_not_wait_for_a_client_that_leaves_stdin_open(data: Path) -> None:
    """Behaviour 244: neither one that says nothing, nor one that told all and goes on."""
    for told, expected in (
        (b"", b"Before this session"),
        (event("PreCompact").encode(), b"Keep in the summary"),
    ):
        began = time.perf_counter()
        process = subprocess.Popen(
            [*LITHOS, "-d", str(data), "checkpoint", "--hook"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment(),
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        with process.stdin, process.stdout, process.stderr:
            process.stdin.write(told)
            process.stdin.flush()
            assert process.wait(10) == 0
            assert time.perf_counter() - began < BOUND
            assert process.stdout.read().startswith(expected)
            assert process.stderr.read() == b""


def test_a_hook_is_silent_without_a_server(tmp_path: Path) -> None:
    """Behaviour 244: no data directory, a dead owner's record, a port that refuses, one that says nothing."""
    data = tmp_path / "data"
    for told in ("", "a text", event("PreCompact")):
        assert hook(data, told=told) == ""
    with owning(data, None):
        assert hook(data) == ""
    with owning(data, "http://127.0.0.1:1"):
        assert hook(data, told="a text") == ""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1)
    with listener, owning(data, f"http://127.0.0.1:{listener.getsockname()[1]}"):
        assert hook(data, told=event("PreCompact")) == ""
        assert hook(data, told="a text") == ""
    assert hook(data) == ""


@pytest.mark.parametrize(
    "garbage", [b"", b"HTTP/1.1 200 OK\r\n\r\n[", b"\x00" * 100, b"HTTP/1.1 200 OK\r\n\r\n{}"]
)
def test_a_hook_is_silent_when_the_server_answers_garbage(tmp_path: Path, garbage: bytes) -> None:
    """Behaviour 244."""
    stop = threading.Event()

    def answer(listener: socket.socket) -> None:
        listener.settimeout(0.1)
        while not stop.is_set():
            try:
                peer, _ = listener.accept()
            except TimeoutError:
                continue
            with peer:
                peer.recv(65_536)
                peer.sendall(garbage)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        try:
            with owning(tmp_path / "data", f"http://127.0.0.1:{listener.getsockname()[1]}"):
                for told in ("", "a text"):
                    assert hook(tmp_path / "data", told=told) == ""
        finally:
            stop.set()
            thread.join(10)


@pytest.mark.parametrize("arguments", [["--no-such"], ["a", "b"], ["--session"], ["-c", "missing.yaml"]])
def test_a_hook_is_silent_when_it_is_called_wrongly(data: Path, arguments: list[str]) -> None:
    """Behaviour 244: exit code 2 would block a compaction."""
    assert hook(data, *arguments, told="kept nowhere") == ""


def test_hooks_stay_quiet_while_a_server_hangs_and_restarts(tmp_path: Path) -> None:
    """Behaviour 244: stopped by a signal, killed, and started anew, a hook at each moment."""
    data = tmp_path / "data"
    with running_lithos(data) as server:
        assert run(data, "inspect", "health").code == 0  # its start is over
        assert words(data) != ""
        server.process.send_signal(signal.SIGSTOP)
        assert hook(data) == ""
        assert hook(data, "--session", "r", told="while it hangs") == ""
        server.process.send_signal(signal.SIGCONT)
        server.kill()
        assert hook(data) == ""
    with running_lithos(data):
        assert run(data, "inspect", "health").code == 0
        assert words(data) != ""
        keep(data, "r", "after the restart", "--session", "r", told="after the restart")
