"""`lithos adopt` with a fake home: folders that it finds, links, copies, lists, removes and refuses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lithos.adopt.commands import NAMES
from lithos.adopt.model_clients import CLIENTS, slug_of
from lithos.app.main import main

pytestmark = pytest.mark.needs("adopt")


class Person:
    """A person with a home folder, a project, and memory files of Claude Code and Codex."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self._capsys = home, capsys
        self.data = home / "data"
        self.project = home / "work" / "shop"
        self.memory = self.remember(self.project)
        (home / ".codex" / "memories" / "rollout_summaries").mkdir(parents=True)
        (home / ".codex" / "memories" / "memory_summary.md").write_text("v1\n\nsummary\n")
        subprocess.run(["git", "init", "-q", str(self.project)], check=True)
        origin = ["git", "-C", str(self.project), "remote", "add", "origin", "git@github.com:acme/shop.git"]
        subprocess.run(origin, check=True)

    def remember(self, project: Path) -> Path:
        """Create a project with a memory of Claude Code, and return its memory folder."""
        project.mkdir(parents=True)
        sessions = self.home / ".claude" / "projects" / slug_of(str(project))
        (sessions / "memory").mkdir(parents=True)
        (sessions / "memory" / "MEMORY.md").write_text(f"# Memory\n\n- of {project.name}\n")
        (sessions / "0a.jsonl").write_text("{broken\n" + json.dumps({"cwd": str(project)}) + "\n")
        return sessions / "memory"

    def run(self, *arguments: str, code: int = 0) -> Any:
        self._capsys.readouterr()
        found = main(["--data-dir", str(self.data), "--json", "adopt", *arguments])
        told = self._capsys.readouterr()
        assert found == code, told
        return json.loads(told.out) if code == 0 else told.err


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Person:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "data" / "knowledge").mkdir(parents=True)
    return Person(tmp_path, capsys)


def test_declared_clients_are_the_known_ones():
    assert tuple(CLIENTS) == NAMES


@pytest.mark.parametrize("inner", ["", "src/deep"])
def test_memory_of_a_project_is_found_from_any_folder_of_its_repository(person, monkeypatch, inner):
    folder = person.project / inner
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(folder)
    [row] = person.run("claude-code")["adopted"]
    assert row == {
        "client": "claude-code",
        "project": "github.com/acme/shop",
        "path": "memory/claude-code/shop",
        "folder": str(person.memory),
        "state": "served",
        "notes": 1,
        "index_over_limit": None,
        "action": "adopted",
    }
    [again] = person.run("claude-code", "--project", str(person.project))["adopted"]
    assert again["action"] == "already adopted"
    assert len(person.run("--list")["adopted"]) == 1


def test_all_projects_get_different_paths(person):
    person.remember(person.home / "other" / "shop")
    rows = person.run("claude-code", "--all")["adopted"]
    assert [(row["path"], row["project"]) for row in rows] == [
        ("memory/claude-code/shop", "shop"),
        ("memory/claude-code/shop-2", "github.com/acme/shop"),
    ]


def test_memory_of_codex_is_for_all_projects(person):
    [row] = person.run("codex")["adopted"]
    assert (row["path"], row["project"], row["notes"]) == ("memory/codex/all", None, 1)


def test_setting_of_claude_code_names_another_folder(person):
    moved = person.home / "mine"
    moved.mkdir()
    (person.home / ".claude" / "settings.json").write_text('{"autoMemoryDirectory": "~/mine"}')
    [row] = person.run("claude-code", "--project", str(person.project))["adopted"]
    assert (row["folder"], row["path"], row["project"]) == (str(moved), "memory/claude-code/all", None)


def test_named_folder_is_adopted(person):
    folder = person.home / "elsewhere"
    folder.mkdir()
    [row] = person.run("claude-code", "--folder", str(folder), "--project", str(person.project))["adopted"]
    assert (row["folder"], row["project"]) == (str(folder), "github.com/acme/shop")


def test_removal_names_what_it_leaves(person):
    """Behaviour 324."""
    before = {path: path.read_bytes() for path in person.memory.iterdir()}
    person.run("claude-code", "--project", str(person.project))
    person.run("codex")
    assert "2 folders are adopted" in person.run("--remove", code=2)
    [row] = person.run("claude-code", "--remove", "--project", str(person.project))["removed"]
    assert row["path"] == "memory/claude-code/shop"
    assert [row["client"] for row in person.run("--list")["adopted"]] == ["codex"]
    assert [row["client"] for row in person.run("--remove")["removed"]] == ["codex"]
    assert "No adopted folder" in person.run("codex", "--remove", code=1)
    assert {path: path.read_bytes() for path in person.memory.iterdir()} == before


def test_copy_takes_the_files_over_once(person):
    copied = person.data / "knowledge" / "memory" / "claude-code" / "shop" / "MEMORY.md"
    arguments = ("claude-code", "--copy", "--project", str(person.project))
    assert person.run(*arguments)["copied"] == [
        {"path": "memory/claude-code/shop", "files": 1, "differing": []}
    ]
    assert copied.read_bytes() == (person.memory / "MEMORY.md").read_bytes()
    assert person.run(*arguments)["copied"][0]["files"] == 0
    (person.memory / "MEMORY.md").write_text("changed")
    person.run(*arguments, code=1)
    assert copied.read_text() != "changed"
    assert "already has notes in" in person.run("claude-code", "--project", str(person.project), code=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["claude-code", "--project", "nowhere"], "is not a folder"),
        (["claude-code", "--project", "."], "has no memory of"),
        (["claude-code", "--folder", "nowhere"], "is not a folder"),
        (["claude-code", "--folder", "data"], "contain each other"),
        (["claude-code", "--folder", "data/knowledge/own"], "contain each other"),
    ],
)
def test_unusable_folders_are_refused(person, monkeypatch, arguments, message):
    (person.data / "knowledge" / "own").mkdir()
    monkeypatch.chdir(person.home)
    assert message in person.run(*arguments, code=1)
    assert person.run("--list")["adopted"] == []


def test_client_must_be_named(person):
    assert "Name a client" in person.run(code=2)
    assert "--all cannot be used" in person.run("claude-code", "--all", "--project", ".", code=2)
