"""`lithos history`, `restore-note` and `undo` as processes, with and without a running server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lithos.kernel.databases.lock import read_owner
from lithos.kernel.values.principals import OWN_CALL
from tests.e2e.feeds import call_tool
from tests.e2e.process import Lithos, run_lithos, running_lithos

pytestmark = pytest.mark.slow

SINCE = "2020-01-01T00:00Z"


def ask(*arguments: str | Path, code: int = 0) -> Any:
    done = run_lithos(*arguments, "--json")
    assert done.returncode == code, done
    return json.loads(done.stdout) if done.stdout else done.stderr


def spoil(server: Lithos) -> str:
    """Overwrite another agent's note and create a second note. Return the id of the first note."""
    note = str(call_tool(server, "lithos_write", agent="ann", title="Raft", content="good")["id"])
    call_tool(server, "lithos_write", agent="bad", id=note, content="bad")
    call_tool(server, "lithos_write", agent="bad", title="Noise", content="noise")
    return note


def check_commands(data: Path, note: str) -> None:
    """Check history, restore and undo with commands that a person would type."""
    versions = ask("-d", data, "history", "raft.md")["versions"]
    assert [(row["version"], row["agent"]) for row in versions] == [(2, "bad"), (1, "ann")]
    assert "-good" in ask("-d", data, "history", note, "--diff", "1..2")["diff"]
    tried = ask("-d", data, "undo", "--agent", "bad", "--since", SINCE, "--dry-run")
    report = ask("-d", data, "undo", "--agent", "bad", "--since", SINCE)
    assert tried["dry_run"]
    assert report["counts"] == tried["counts"]
    assert [row["result"] for row in report["notes"]] == ["deleted", "reverted"]
    again = ask("-d", data, "undo", "--agent", "bad", "--since", SINCE)
    assert again["counts"]["nothing_to_do"] == 2
    (gone,) = ask("-d", data, "history", "--deleted")["versions"]
    assert gone["path"] == "noise.md"
    back = ask("-d", data, "restore-note", gone["id"], "--version", str(gone["version"]))
    assert (back["status"], back["path"]) == ("created", "noise.md")
    assert (data / "knowledge" / "raft.md").read_text().endswith("\ngood\n")
    assert "The history has no version 99" in ask("-d", data, "restore-note", note, "--version", "99", code=1)


def test_restore_and_undo_commands_work_with_a_running_server(tmp_path: Path) -> None:
    """behaviours 222, 223, 224"""
    data = tmp_path / "data"
    with running_lithos(data) as server:
        check_commands(data, spoil(server))


def test_restore_and_undo_commands_work_without_a_server(tmp_path: Path) -> None:
    """behaviours 222, 223, 224"""
    data = tmp_path / "data"
    with running_lithos(data) as server:
        note = spoil(server)
    check_commands(data, note)


def test_only_the_owners_commands_may_use_reserved_agent_names(tmp_path: Path) -> None:
    """The command header is valid only with the owner's token, and this token only with the header."""
    data = tmp_path / "data"
    with running_lithos(data) as server:
        note = spoil(server)
        owner = read_owner(data / ".lithos" / "lock")
        assert owner is not None
        assert owner.token is not None
        authorization = {"Authorization": f"Bearer {owner.token}"}
        for headers in ({}, {OWN_CALL: "1"}, authorization):
            for tool, more in (("lithos_delete", {}), ("lithos_note_update", {"tags": ["x"]})):
                answer = call_tool(server, tool, headers=headers, id=note, agent="undo", **more)
                assert (answer["status"], answer["code"]) == ("error", "invalid_input")
        own = {OWN_CALL: "1", **authorization}
        answer = call_tool(server, "lithos_note_update", headers=own, id=note, agent="undo", tags=["x"])
        assert answer["status"] == "updated"
        for words in (("brief", "x"), ("checkpoint", "--text", "x"), ("token", "create", "t")):
            done = run_lithos("-d", data, *words, "--agent", "Undo")
            assert "Lithos itself acts under that name" in done.stderr
            assert done.returncode != 0
        (tmp_path / "notes.jsonl").write_text('{"id": "1", "title": "T", "text": "t", "author": "scan"}\n')
        import_it = ("-d", data, "import", tmp_path / "notes.jsonl", "--json")
        assert "Lithos itself acts" in run_lithos(*import_it, "--agent", "undo").stderr
        assert run_lithos(*import_it).returncode == 0
        assert run_lithos(*import_it, "--agent", "import").returncode == 0
