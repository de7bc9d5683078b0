"""Claude Code plugin: its files are valid, and no other file is changed (behaviours 244, 245)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lithos import __version__
from lithos.app.main import main
from lithos.app.options import parse_arguments
from lithos.clients.plugin.writing import make_skill, write_plugin
from tests.release import names, plugins

#: Events and matchers that the plugin uses, from the client's hooks reference.
EVENTS = {
    "SessionStart": {"startup", "resume", "clear", "compact"},
    "UserPromptSubmit": set[str](),
    "PreCompact": {"manual", "auto"},
    "SessionEnd": set[str](),
}
FILES = {".claude-plugin/plugin.json", ".mcp.json", "skills/lithos/SKILL.md", "hooks/hooks.json"}


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def connect(folder: Path, *more: str) -> int:
    return main(
        ["-d", str(folder.parent / "my data"), "connect", "claude-code", "--plugin", str(folder), *more]
    )


def commands_of(folder: Path) -> dict[str, list[str]]:
    """Return the hooks' shell commands by event."""
    return {
        event: [hook["command"] for group in groups for hook in group["hooks"]]
        for event, groups in read(folder / "hooks" / "hooks.json")["hooks"].items()
    }


def check_plugin(folder: Path) -> None:
    """Check the rules of the client's plugins reference, as a validator does."""
    assert files_of(folder).keys() == FILES  # the folder .claude-plugin contains only the manifest
    manifest = read(folder / ".claude-plugin" / "plugin.json")
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", manifest["name"])
    assert manifest.keys() <= {"name", "version", "description", "author", "license", "keywords"}
    assert manifest["version"] == __version__
    assert manifest["author"].keys() <= {"name", "email", "url"}
    assert (folder / "skills" / "lithos" / "SKILL.md").read_text(encoding="utf-8") == make_skill()
    servers = read(folder / ".mcp.json")["mcpServers"]
    assert servers.keys() == {"lithos"}
    assert servers["lithos"].keys() <= {"type", "command", "args", "env", "alwaysLoad"}
    assert servers["lithos"]["alwaysLoad"] is True
    assert all(isinstance(word, str) for word in servers["lithos"]["args"])
    hooks = read(folder / "hooks" / "hooks.json")
    assert hooks.keys() <= {"description", "hooks"}
    assert hooks["hooks"].keys() == EVENTS.keys()
    for event, groups in hooks["hooks"].items():
        for group in groups:
            assert group.keys() <= {"matcher", "hooks"}
            assert set(filter(None, group.get("matcher", "").split("|"))) <= EVENTS[event]
            for hook in group["hooks"]:
                assert hook.keys() == {"type", "command", "timeout"}
                assert hook["type"] == "command"


def test_plugin_has_the_files_that_claude_code_loads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Behaviour 245."""
    folder = tmp_path / "plugin"
    assert connect(folder) == 0
    printed = capsys.readouterr().out
    assert all(f"  {name}\n" in printed for name in FILES)
    assert f"claude --plugin-dir {folder}" in printed
    check_plugin(folder)
    entry = read(folder / ".mcp.json")["mcpServers"]["lithos"]
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-5:] == ["--data-dir", str(tmp_path / "my data"), "serve", "--transport", "stdio"]


def test_hooks_use_only_existing_command_options(tmp_path: Path) -> None:
    """Behaviour 244: checks the part after the guard, in each form."""
    write_plugin(tmp_path / "own", (sys.executable, "-m", "lithos"), ("--data-dir", "/my data"))
    plugins.write_plugin(tmp_path / "portable")
    for form in ("own", "portable"):
        check_plugin(tmp_path / form)
        lines = commands_of(tmp_path / form)
        assert [line.split(" --hook")[0].split()[-1] for line in lines["SessionStart"]] == [
            "brief",
            "checkpoint",
        ]
        for event, line in ((event, line) for event, group in lines.items() for line in group):
            words = subprocess.run(
                ["sh", "-c", line.replace("exec ", "exec printf '%s\\n' ")],
                capture_output=True, text=True, check=True, cwd=tmp_path,
                env={"PATH": f"{stub_of_lithos(tmp_path)}:{os.environ['PATH']}", "HOME": "/home/ann"},
            ).stdout.splitlines()  # fmt: skip
            start = words.index("lithos" if form == "own" else names.package) + 1
            parsed = parse_arguments(words[start:])
            assert parsed.command in ("brief", "checkpoint")
            quiet = {"quiet": True} if parsed.command == "brief" else {}
            assert parsed.typed == {"hook": True, "client": "claude-code", "event": event} | quiet
            assert parsed.data_dir == Path("/my data" if form == "own" else "/home/ann/Lithos")


def stub_of_lithos(folder: Path) -> Path:
    """Return a folder with a fake program `lithos-server`."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / names.package).write_text("#!/bin/sh\n")
    (programs / names.package).chmod(0o755)
    return programs


@pytest.mark.parametrize("form", ["own", "portable"])
def test_hooks_are_silent_when_lithos_is_not_installed(form: str, tmp_path: Path) -> None:
    """Behaviour 244: Lithos may have been uninstalled since the hooks were written."""
    if form == "own":
        write_plugin(tmp_path, (str(tmp_path / "gone" / "lithos"),), ("-d", "x"))
    else:
        plugins.write_plugin(tmp_path)
    shell = shutil.which("sh") or "/bin/sh"
    for line in (line for group in commands_of(tmp_path).values() for line in group):
        done = subprocess.run(
            [shell, "-c", line], capture_output=True, env={"PATH": str(tmp_path), "HOME": "/"}, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_second_write_of_the_plugin_changes_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "plugin"
    assert connect(folder) == 0
    before = {path: os.stat(folder / path).st_mtime_ns for path in files_of(folder)}
    assert connect(folder, "--json") == 0
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {Path(file).relative_to(folder).as_posix() for file in printed["files"]} == FILES
    assert {path: os.stat(folder / path).st_mtime_ns for path in files_of(folder)} == before
    (folder / "hooks" / "hooks.json").write_text("{}")
    (folder / "mine.txt").write_text("mine")
    assert connect(folder) == 0
    check_plugin_files = files_of(folder)
    assert check_plugin_files.pop("mine.txt") == b"mine"
    assert commands_of(folder).keys() == EVENTS.keys()


@pytest.mark.parametrize("content", [None, b"{}", b"[]", b"{", b'{"name": "other"}', b"[" * 70_000])
def test_folder_of_another_program_is_left_unchanged(
    content: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "plugin"
    (folder / ".claude-plugin").mkdir(parents=True)
    if content is not None:
        (folder / ".claude-plugin" / "plugin.json").write_bytes(content)
    (folder / ".mcp.json").write_text("theirs")
    before = files_of(folder)
    assert connect(folder) == 2
    assert "Nothing was written. Choose an empty or a new folder." in capsys.readouterr().err
    assert files_of(folder) == before


def test_plugin_folder_path_with_a_file_or_link_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("theirs")
    assert connect(tmp_path / "file") == 2
    assert connect(tmp_path / "plugin") == 0
    (tmp_path / "elsewhere").mkdir()
    shutil.rmtree(tmp_path / "plugin" / "hooks")
    (tmp_path / "plugin" / "hooks").symlink_to(tmp_path / "elsewhere")
    assert connect(tmp_path / "plugin") == 2
    assert "leads out of the folder through a link" in capsys.readouterr().err
    assert files_of(tmp_path / "elsewhere") == {}
    assert (tmp_path / "file").read_text() == "theirs"


def test_plugin_option_is_refused_for_other_clients(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["connect", "cursor", "--plugin", str(tmp_path / "plugin")]) == 2
    assert "--plugin is only for claude-code" in capsys.readouterr().err
    assert not (tmp_path / "plugin").exists()
