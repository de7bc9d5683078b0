"""The released plugin. Its server starts, and its hooks inform the model (behaviour 244)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from lithos.app.main import main
from tests.e2e.process import clean_environment
from tests.e2e.stdio import stdio_program

pytestmark = pytest.mark.slow


def run_hooks(plugin: Path, event: str, folder: Path, **told: str) -> list[str]:
    """Run the hooks that match an event, as Claude Code does. Return their outputs."""
    groups = json.loads((plugin / "hooks" / "hooks.json").read_text())["hooks"][event]
    value = told.get("source", told.get("trigger", ""))
    printed = []
    message = {"session_id": "s1", "cwd": str(folder), "hook_event_name": event, **told}
    for group in groups:
        if group.get("matcher") and value not in group["matcher"].split("|"):
            continue
        for hook in group["hooks"]:
            done = subprocess.run(
                ["sh", "-c", hook["command"]],
                input=json.dumps(message), capture_output=True, text=True, cwd=folder, timeout=30,
                check=False, env=clean_environment({"XDG_STATE_HOME": str(plugin.parent / "state")}),
            )  # fmt: skip
            assert (done.returncode, done.stderr) == (0, "")
            assert len(done.stdout.encode()) <= 3_200
            printed.append(done.stdout)
    return printed


def expect_words(plugin: Path, event: str, folder: Path, **told: str) -> list[str]:
    """Return the outputs of the hooks that are not empty.

    On a busy machine, the first attempts may time out. Each attempt is another session, because an event is
    answered only once.
    """
    printed: list[str] = []
    for attempt in range(6):
        again = run_hooks(plugin, event, folder, **told, session_id=f"{event} {attempt}")
        printed = [new or old for new, old in zip(again, printed or again, strict=True)]
        if all(printed):
            break
    return printed


def context_in(printed: str, event: str) -> str:
    """Return the text that the client adds to the model's context."""
    answer = json.loads(printed)["hookSpecificOutput"]
    assert answer["hookEventName"] == event
    text: str = answer["additionalContext"]
    return text


def test_plugin_informs_a_session_through_its_hooks(tmp_path: Path) -> None:
    """Behaviour 244: hooks are silent before a server runs.

    While a server runs, hooks print one briefing, and another briefing after a compaction.
    """
    plugin, folder = tmp_path / "plugin", tmp_path / "raft"
    folder.mkdir()
    assert main(["-d", str(tmp_path / "data"), "connect", "claude-code", "--plugin", str(plugin)]) == 0
    assert run_hooks(plugin, "SessionStart", folder, source="startup") == [""]
    entry = json.loads((plugin / ".mcp.json").read_text())["mcpServers"]["lithos"]
    environment = clean_environment(entry.get("env", {}))
    # The client starts the server in the folder of its session, so both have the same project.
    with stdio_program([entry["command"], *entry["args"]], environment, cwd=folder) as server:
        server.greet()
        server.call(
            1, "lithos_write", agent="ann", title="Raft", content="A raft log is replicated.", tags=["raft"]
        )
        assert server.answer()["result"]["structuredContent"]["status"] == "created"
        server.call(2, "lithos_search", query="raft log")
        assert server.answer()["id"] == 2  # the note is now indexed
        (told,) = expect_words(plugin, "SessionStart", folder, source="startup")
        assert "A raft log is replicated." in context_in(told, "SessionStart")
        assert run_hooks(plugin, "SessionStart", folder, source="resume") == [""]
        (kept,) = expect_words(plugin, "PreCompact", folder, trigger="auto")
        assert kept.startswith("In the summary, keep")
        again, reminded = expect_words(plugin, "SessionStart", folder, source="compact")
        assert "A raft log is replicated." in again
        assert context_in(reminded, "SessionStart").startswith("The conversation was shortened.")
        assert run_hooks(plugin, "SessionEnd", folder, reason="clear") == [""]
        host = os.uname().nodename.partition(".")[0]
        checkpoints = tmp_path / "data" / "knowledge" / "checkpoints"
        for _ in range(6):
            assert run_hooks(plugin, "SessionEnd", folder, compact_summary="The end.") == [""]
            if checkpoints.exists():
                break
        (kept_file,) = checkpoints.iterdir()
        assert f"author: claude-code@{host}\n" in kept_file.read_text()
        server.close_input()
        server.rest()
    assert run_hooks(plugin, "SessionStart", folder, source="startup", session_id="late") == [""]
