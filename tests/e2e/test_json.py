"""JSON output: with `--json`, every command prints only JSON on stdout (behaviour 209)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lithos.app.options import make_parser
from tests.e2e.feeds import call_tool
from tests.e2e.process import run_lithos, running_lithos, until
from tests.servers import put_note

#: One call and its exit code for each command that ends without a server.
TYPED = {
    "search": ("search raft", 0),
    "stats": ("stats", 0),
    "inspect": ("inspect health", 0),
    "audit": ("audit", 0),
    "events": ("events --no-follow", 0),
    "wait": ("wait --timeout 0", 3),
    "reindex": ("reindex", 0),
    "reconcile": ("reconcile", 0),
    "extract-entities": ("extract-entities", 0),
    "validate": ("validate --fix --yes", 0),
    "doctor": ("doctor", 0),
    "evaluate": ("evaluate tests.yaml", 0),
    "history": ("history raft.md", 0),
    "restore-note": ("restore-note raft.md --version 1", 0),
    "undo": ("undo --agent nobody --since 2020-01-01T00:00Z", 0),
    "backup": ("backup copy", 0),
    "restore": ("restore copy --force", 0),
    "export": ("export", 0),
    "import": ("import memories.jsonl", 0),
    "connect": ("connect cursor", 0),
    "connect --list": ("connect --list", 0),
    "connect --write": ("connect cursor --write --scope project", 0),
    "connect --remove": ("connect cursor --remove --scope project", 0),
    "skill": ("skill", 0),
    "token": ("token create ci", 0),
    "login": ("login", 0),
    "completion": ("completion bash", 0),
    "demo": ("demo", 0),
    "proposals": ("proposals", 0),
    "conflicts": ("conflicts", 0),
    "care": ("care --open-tasks", 0),
    "worth": ("worth", 0),
    "projects": ("projects", 0),
    "adopt": ("adopt codex --folder mem", 0),
    "adopt --list": ("adopt --list", 0),
    "adopt --remove": ("adopt codex --folder mem --remove", 0),
    "adopt --copy": ("adopt codex --folder mem --copy", 0),
    "sessions": ("sessions list", 0),
    "sessions search": ("sessions search raft", 0),
    "merge-driver": ("merge-driver base.md ours.md theirs.md", 0),
}
#: Commands that need a running server.
ASKING = {"brief": "brief raft", "checkpoint": "checkpoint --text kept"}
#: Stream commands that may print nothing.
MAY_BE_EMPTY = {"events", "wait"}


@pytest.mark.slow
def test_every_command_prints_one_json_document_per_line(tmp_path: Path) -> None:
    """Behaviour 209: all other tests with processes start `serve --json`."""
    (commands,) = [action.choices for action in make_parser()._actions if action.dest == "command"]
    assert commands
    put_note(tmp_path / "data", "raft.md", "# Raft\n\nSee [[Paxos]].\n")
    (tmp_path / "tests.yaml").write_text("- question: raft\n  expect: [raft.md]\n")
    (tmp_path / "mem").mkdir()
    (tmp_path / "mem" / "MEMORY.md").write_text("- one\n")
    for side in ("base", "ours", "theirs"):
        (tmp_path / f"{side}.md").write_text("# Raft\n")
    (tmp_path / "memories.jsonl").write_text('{"text": "Agents vote."}\n')
    assert commands.keys() <= {"serve", *TYPED, *ASKING}
    with running_lithos(tmp_path / "data") as server:
        for typed in [ASKING[name] for name in ASKING if name in commands]:
            expect_json(typed, tmp_path, 0)
        # Without a server, a command may end before the history contains the note.
        until(lambda: call_tool(server, "lithos_history", path="raft.md")["versions"])
    for typed, code in [TYPED[name] for name in TYPED if name.split()[0] in commands]:
        expect_json(typed, tmp_path, code)


def expect_json(typed: str, folder: Path, code: int) -> None:
    public = {"LITHOS_SERVER__PUBLIC_URL": "http://127.0.0.1:8765"} if typed == "login" else {}
    done = run_lithos("--json", *typed.split(), cwd=folder, env=public)
    assert (done.returncode, done.stderr) == (code, ""), typed
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert documents or typed.split(maxsplit=1)[0] in MAY_BE_EMPTY, typed
