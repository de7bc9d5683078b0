"""`lithos sessions search` and `show`, with and without a running server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.feeds import call_tool
from tests.e2e.process import run_lithos, running_lithos, until
from tests.servers import put_note
from tests.sessions.served import DECISION, QUESTION, SECRET, put_sessions


@pytest.mark.slow
def test_turns_are_found_and_printed(tmp_path: Path) -> None:
    put_sessions(tmp_path / "transcripts")
    put_note(tmp_path / "data", "a.md", "# A\n")

    def run(*arguments: str, code: int = 0) -> str:
        done = run_lithos("-d", tmp_path / "data", *arguments)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        return done.stdout + done.stderr

    def told(*arguments: str) -> tuple[str, str, str]:
        found = json.loads(run("--json", "sessions", "search", QUESTION, "--project", "shop"))
        turn = f"{found['results'][0]['id']}#{found['results'][0]['turn']}"
        return turn, run("sessions", "search", QUESTION), run("sessions", "show", turn)

    run("sessions", "add", str(tmp_path / "transcripts"))
    with running_lithos(tmp_path / "data") as server:
        until(lambda: call_tool(server, "lithos_search", query=QUESTION, kinds=["session"])["results"])
        beside = told()
        whole = json.loads(run("--json", "sessions", "show", "shop"))
    turn, listed, shown = beside
    assert f"{turn}, assistant, strong match\n   {DECISION}" in listed
    assert f"[turn 2] assistant, 2026-11-28 09:01\n{DECISION}" in shown
    assert [row["turn"] for row in whole["rows"]] == [1, 2, 3, 4]
    assert SECRET not in json.dumps(whole)
    assert told()[2] == shown
    assert "Unknown session ses_0" in run("sessions", "show", "ses_0", code=1)
    assert "No results found." in run("sessions", "search", QUESTION, "--project", "elsewhere")
