"""Several writers of one memory file: sessions of the client, an agent and a person (behaviour 323)."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.feeds import call_tool
from tests.e2e.process import run_lithos, running_lithos, until

pytestmark = [pytest.mark.needs("adopt"), pytest.mark.slow]

INDEX = "memory/claude-code/all/MEMORY.md"
#: A session of a client. It reads the file, waits for the moment, and replaces the file with one more line.
SESSION = """
import os, sys, time
path, line, moment = sys.argv[1], sys.argv[2], float(sys.argv[3])
text = open(path).read()
while time.time() < moment:
    pass
with open(path + "." + str(os.getpid()), "w") as file:
    file.write(text + line + "\\n")
os.replace(file.name, path)
"""


def test_sessions_that_write_in_one_moment_lose_nothing(tmp_path: Path):
    """Behaviour 323: each written text is a version, or in the displaced files, and edits are merged."""
    memory, data = tmp_path / "memory", tmp_path / "data"
    memory.mkdir()
    index = memory / "MEMORY.md"
    index.write_text("# Memory\n\n- start\n")
    with running_lithos(data) as server:
        done = run_lithos("-d", data, "adopt", "claude-code", "--folder", memory)
        assert done.returncode == 0, done.stderr
        until(lambda: call_tool(server, "lithos_read", path=INDEX).get("version") == 1)
        note = call_tool(server, "lithos_read", path=INDEX)
        moment = time.time() + 1.5
        sessions = [
            subprocess.Popen([sys.executable, "-c", SESSION, str(index), f"- of session {n}", str(moment)])
            for n in range(2)
        ]
        time.sleep(max(0.0, moment - time.time() - 0.01))
        edits = [
            call_tool(
                server, "lithos_note_edit", id=note["id"], op="append", text=f"- of agent {n}", agent="ada"
            )
            for n in range(5)
        ]
        assert [session.wait(60) for session in sessions] == [0, 0]
        assert {each["status"] for each in edits} == {"updated"}
        until(lambda: _is_known(server, index))
        with index.open("a") as file:
            file.write("- of a person\n")
        until(lambda: _is_known(server, index))
        texts = [index.read_text()]
        rows = call_tool(server, "lithos_history", id=note["id"], limit=100)["versions"]
        for row in rows:
            texts.append(call_tool(server, "lithos_read", id=note["id"], version=row["version"])["content"])
    displaced = data / ".lithos" / "displaced"
    texts += [path.read_text() for path in displaced.glob("*") if path.suffix != ".json"]
    written = [f"- of session {n}" for n in range(2)] + [f"- of agent {n}" for n in range(5)]
    for line in (*written, "- of a person", "- start"):
        assert any(line in text for text in texts), (line, texts)
    assert "- of a person" in index.read_text()


def _is_known(server, index: Path) -> bool:
    shown = call_tool(server, "lithos_read", path=INDEX).get("content", "")
    return index.read_text().endswith(shown + "\n") and "\n".join(shown.split("\n")[-1:]) in index.read_text()
