"""`lithos checkpoint`: session findings are stored once. Its hook is silent and quick (behaviour 244)."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from lithos.clients.hooks.checkpoint import LONGEST_TEXT, MOST
from lithos.server.command.hook_failsafe import HOOK_BUDGET, TOKEN_BYTES
from tests.e2e.hooks import Printed, Typist, make_typist, started
from tests.e2e.owners import owning
from tests.e2e.process import LITHOS, START_BOUND, clean_environment, run_lithos, running_lithos

typist = pytest.fixture(make_typist)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the data directory of a running server."""
    folder = tmp_path_factory.mktemp("checkpoints") / "data"
    with running_lithos(folder):
        yield folder


@frozen
class Session:
    """A session that runs `lithos checkpoint` with a running server and reads the notes that it stores."""

    data: Path
    typist: Typist

    def run(self, *arguments: str, **more: Any) -> Printed:
        return self.typist(self.data, "checkpoint", *arguments, **more)

    def hook(self, *arguments: str, **more: Any) -> str:
        """Run the hook and check the guarantees of every hook. Return its output."""
        done = self.run("--hook", *arguments, **more)
        assert (done.code, done.err) == (0, "")
        assert len(done.out.encode()) <= HOOK_BUDGET * TOKEN_BYTES
        return done.out

    def notes(self, session: str) -> list[str]:
        """Return the notes of a session."""
        found = (self.data / "knowledge" / "checkpoints").glob(f"{session}-*.md")
        return [path.read_text() for path in found]


@pytest.fixture
def session(data: Path, typist: Typist) -> Session:
    return Session(data, typist)


def event(name: str, **more: Any) -> str:
    """Return the input that Claude Code sends to its hooks."""
    told = {"session_id": "s1", "transcript_path": "/tmp/t.jsonl", "cwd": "/", "hook_event_name": name}
    return json.dumps(told | more)


def test_session_has_one_note_that_contains_each_text_once(session: Session, tmp_path: Path) -> None:
    (tmp_path / "my-repository" / ".git").mkdir(parents=True)
    below = tmp_path / "my-repository" / "src"
    below.mkdir()
    arguments = ("--session", "Once.1", "--agent", "claude-code@host")
    first = session.run(*arguments, "--text", "# Learned\nRaft needs a majority.", cwd=below)
    assert (first.code, first.err) == (0, "")
    assert first.out.startswith("Stored in checkpoints/once-1-")
    again = session.run(*arguments, "--text", "# Learned\nRaft needs a majority.\n")
    assert (again.code, again.out.split(";")[1]) == (0, " nothing was changed.\n")
    (tmp_path / "more.md").write_text("Paxos, too.\n")
    assert "(version 2)" in session.run(*arguments, str(tmp_path / "more.md")).out
    stored = json.loads(session.run("--json", *arguments, told="From a pipe.").out)
    assert (stored["status"], stored["version"]) == ("stored", 3)
    (note,) = session.notes("once-1")
    assert "Checkpoint of my-repository, 20" in note
    for part in ("author: claude-code@host", "session: Once.1", "- checkpoint", "- my-repository"):
        assert part in note
    assert note.count("Raft needs a majority.") == 1
    assert [line for line in note.splitlines() if line.startswith("##")][1] == "### Learned"
    assert note.index("Raft") < note.index("Paxos, too.") < note.index("From a pipe.")


def test_checkpoints_without_a_session_share_a_daily_note_per_agent(session: Session) -> None:
    for text in ("one", "two"):
        assert session.run("--client", "my-client", "--text", text).code == 0
    (note,) = session.notes(f"my-client-{os.uname().nodename.partition('.')[0].lower()}")
    assert "one" in note
    assert "two" in note


def test_checkpoint_agent_name_is_the_same_in_every_session(session: Session) -> None:
    """docs/spec/integration.md §2: the agent name is `--agent`, or by default `<client>@<host>`."""
    host = os.uname().nodename.partition(".")[0]
    for name, environment in (("who-a", {"CLAUDECODE": "1"}), ("who-b", {"CLAUDE_PROJECT_DIR": "/"})):
        assert session.run("--session", name, "--text", "x", **environment).code == 0
        (note,) = session.notes(name)
        assert f"author: claude-code@{host}\n" in note


@pytest.mark.slow
def test_simultaneous_checkpoints_in_one_session_are_all_kept(session: Session) -> None:
    texts = ["same", "same", "one", "two"]
    threads = [
        threading.Thread(
            target=started, args=(session.data, "checkpoint", "--session", "at-once", "--text", text)
        )
        for text in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    (note,) = session.notes("at-once")
    lines = note.splitlines()
    assert [lines.count(text) for text in ("same", "one", "two")] == [1, 1, 1]


def test_number_of_checkpoints_in_one_note_is_limited(session: Session) -> None:
    path = next(iter(session.run("--session", "full", "--text", "0").out.split()[2:3]))
    file = session.data / "knowledge" / path
    more = "".join(f"\n## 2026-01-01 00:00:00 UTC ({number:012x})\n\nx\n" for number in range(MOST))
    file.write_text(file.read_text() + more)
    waited = run_lithos(
        "-d", session.data, "wait", "--types", "note.updated", "--since", "0", "--timeout", "20"
    )
    assert waited.returncode == 0
    full = session.run("--session", "full", "--text", "late")
    assert (full.code, f"number of checkpoints, {MOST}" in full.err) == (1, True)
    assert session.hook("--session", "full", told="late") == ""
    assert "late" not in file.read_text()


def test_checkpoint_command_shows_errors_to_a_person(session: Session, tmp_path: Path) -> None:
    for arguments, words in (
        (("--text", "  "), "The text is empty"),
        (("--text", "x", "file"), "Use only one"),
        ((str(tmp_path / "none"),), "Cannot read"),
        (("--text", "x", "--session", ""), "1 to 1,000 characters"),
        (("--text", "x" * (LONGEST_TEXT + 1)), "at most 16,000 characters"),
    ):
        done = session.run(*arguments)
        assert (done.code, done.out, words in done.err) == (2, "", True), done
    done = session.typist(tmp_path / "nowhere", "checkpoint", "--text", "x")
    assert (done.code, "No server owns" in done.err) == (1, True)


def test_hook_prints_reminders_only_at_events_that_reach_the_model(session: Session) -> None:
    """Behaviour 244: before a compaction, the reminder is plain text, because clients refuse JSON there."""
    before = session.hook(told=event("PreCompact", trigger="auto"))
    after = session.hook(told=event("SessionStart", source="compact"))
    assert before.startswith("In the summary, keep")
    answer = json.loads(after)["hookSpecificOutput"]
    assert answer["hookEventName"] == "SessionStart"
    assert answer["additionalContext"].startswith("The conversation was shortened.")
    assert session.hook(told=event("SessionStart", source="startup")) == ""
    assert "lithos_write" in session.hook()
    assert session.hook(told=event("SessionEnd", reason="clear")) == ""
    assert json.loads(session.hook("--json")).keys() == {"text"}
    assert session.notes("s1") == []


def test_hook_stores_its_text_without_any_output(session: Session, tmp_path: Path) -> None:
    """Behaviour 244."""
    told = event("PostCompact", session_id="given", compact_summary="The summary.", cwd=str(tmp_path))
    (tmp_path / "kept.md").write_text("From a file.")
    ended = event("SessionEnd", session_id="given")
    for arguments, words in (
        (("--client", "claude-code"), told),
        (("--client", "claude-code"), told),
        (("--session", "given"), "Plain text."),
        (("--session", "given", "--text", "Typed."), ""),
        ((str(tmp_path / "kept.md"),), ended),
        ((str(tmp_path / "none.md"),), ended),
    ):
        assert session.hook(*arguments, told=words) == ""
    (note,) = session.notes("given")
    assert "author: claude-code@" in note
    assert f"Checkpoint of {tmp_path.name}, " in note
    for text in ("The summary.", "Plain text.", "Typed.", "From a file."):
        assert note.splitlines().count(text) == 1


def test_hook_shortens_a_text_that_is_too_long(session: Session) -> None:
    assert session.hook("--session", "long", told="word " * 20_000) == ""
    (note,) = session.notes("long")
    assert "(Cut: the first 16,000 of 99,999 characters.)" in note
    assert len(note) < LONGEST_TEXT + 1_000


def test_hook_tolerates_invalid_client_input(session: Session) -> None:
    """Behaviour 244."""
    for told in (
        b"{", b"{" * 5_000, b"\xff\xfe\x00", b"[1]",
        b'{"session_id": 7, "cwd": ["x"], "hook_event_name": {}}',
        b'{"cwd": "\\u0000", "session_id": "' + b"x" * 5_000 + b'"}', b'{"compact_summary": "x',
    ):  # fmt: skip
        session.hook("--session", "wrongly", told=told)


@pytest.mark.slow
def test_hook_does_not_wait_when_stdin_stays_open(data: Path) -> None:
    """Behaviour 244: the client sends nothing, or it sends all its input without closing stdin."""
    for told, expected in (
        (b"", b"Before this session"),
        (event("PreCompact").encode(), b"In the summary, keep"),
    ):
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
            assert process.wait(START_BOUND) == 0
            said = process.stdout.read()  # the output may be empty on a busy machine
            assert said == b"" or said.startswith(expected)
            assert process.stderr.read() == b""


def test_hook_is_silent_when_no_server_runs(typist: Typist, tmp_path: Path) -> None:
    """Behaviour 244: covers a missing data directory, the record of a dead owner, and a closed port."""
    nobody = Session(tmp_path / "data", typist)
    for told in ("", "a text", event("PreCompact")):
        assert nobody.hook(told=told) == ""
    for url in (None, "http://127.0.0.1:1"):
        with owning(nobody.data, url):
            assert nobody.hook() == nobody.hook(told="a text") == ""
    assert nobody.hook() == ""


def test_hook_is_silent_when_its_arguments_are_wrong(session: Session) -> None:
    """Behaviour 244: exit code 2 would prevent a compaction."""
    for arguments in (["--no-such"], ["a", "b"], ["--session"]):
        assert session.hook(*arguments, told="kept nowhere") == ""
