"""Several writers of one memory file: sessions of the client, an agent and a person (behaviour 323)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.feeds import call_tool
from tests.e2e.process import Lithos, run_lithos, running_lithos, until

pytestmark = [pytest.mark.needs("adopt"), pytest.mark.slow]

INDEX = "memory/claude-code/all/MEMORY.md"
#: A session of a client. It reads the file, waits for a signal, and replaces the file with one more line.
SESSION = """
import os, sys
path, line = sys.argv[1:]
text = open(path).read()
print("read", flush=True)
sys.stdin.readline()
with open(f"{path}.{os.getpid()}", "w") as file:
    file.write(f"{text}{line}\\n")
os.replace(file.name, path)
"""


class Session:
    """A process that has read the file and now writes it with one more line when `write` is called."""

    def __init__(self, index: Path, line: str) -> None:
        command = [sys.executable, "-c", SESSION, str(index), line]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "read\n"

    def signal(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self) -> None:
        self._process.communicate(timeout=60)
        assert self._process.returncode == 0


@contextmanager
def adopting(tmp_path: Path) -> Iterator[tuple[Lithos, Path, str]]:
    memory, data = tmp_path / "memory", tmp_path / "data"
    memory.mkdir()
    index = memory / "MEMORY.md"
    index.write_text("# Memory\n\n- start\n")
    with running_lithos(data) as server:
        done = run_lithos("-d", data, "adopt", "claude-code", "--folder", memory)
        assert done.returncode == 0, done.stderr
        until(lambda: call_tool(server, "lithos_read", path=INDEX).get("version") == 1)
        yield server, index, call_tool(server, "lithos_read", path=INDEX)["id"]


def versions_of(server: Lithos, note_id: str) -> list[str]:
    rows = call_tool(server, "lithos_history", id=note_id, limit=100)["versions"]
    return [call_tool(server, "lithos_read", id=note_id, version=row["version"])["content"] for row in rows]


def test_sessions_that_read_the_same_text_are_merged(tmp_path: Path):
    """Behaviour 323: the second session overwrites the line of the first, and Lithos adds it again."""
    with adopting(tmp_path) as (server, index, note_id):
        first, second = Session(index, "- of the first"), Session(index, "- of the second")
        first.signal()
        first.end()
        until(lambda: len(versions_of(server, note_id)) == 2)
        second.signal()
        second.end()
        whole = "# Memory\n\n- start\n- of the second\n- of the first\n"
        until(lambda: index.read_text() == whole, index.read_text)
        assert call_tool(server, "lithos_read", id=note_id)["version"] == 4


def test_edits_of_agents_and_a_person_are_kept_while_a_session_writes(tmp_path: Path):
    """Behaviour 323: all writers write in one moment, and each text is in the file or in its history."""
    with adopting(tmp_path) as (server, index, note_id):
        sessions = [Session(index, f"- of session {number}") for number in range(3)]
        for session in sessions:
            session.signal()
        edits = [
            call_tool(
                server, "lithos_note_edit", id=note_id, op="append", text=f"- of agent {n}", agent="ada"
            )
            for n in range(5)
        ]
        for session in sessions:
            session.end()
        assert {each["status"] for each in edits} <= {"updated", "error"}
        with index.open("a") as file:
            file.write("- of a person\n")
        until(lambda: "- of a person" in versions_of(server, note_id)[0])
        texts = versions_of(server, note_id)
    displaced = tmp_path / "data" / ".lithos" / "displaced"
    texts += [path.read_text() for path in displaced.glob("*") if path.suffix != ".json"]
    acknowledged = [f"- of agent {n}" for n, each in enumerate(edits) if each["status"] == "updated"]
    assert acknowledged
    for line in (*acknowledged, "- of a person", "- start"):
        assert any(line in text for text in texts), (line, texts)
    assert any(f"- of session {number}" in text for text in texts for number in range(3))
    assert "- of a person" in index.read_text()
    assert [path.name for path in index.parent.iterdir()] == ["MEMORY.md"]
