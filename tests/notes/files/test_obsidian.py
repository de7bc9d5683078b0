"""Obsidian vault settings. Broken settings are ignored."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lithos.kernel.databases.unserved_notes import find_own_notes
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.lookup import find_note
from lithos.notes.files.vault_settings import LARGEST, VaultSettings, read_ignored


def settle(vault: Path, name: str, content: object) -> None:
    file = vault / ".obsidian" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))


def test_default_templates_folder_is_ignored_unless_obsidian_names_another(tmp_path: Path) -> None:
    assert read_ignored(tmp_path, None).covers("templates/x.md")
    settle(tmp_path, "templates.json", {"folder": "Extras/Templates"})
    ignored = read_ignored(tmp_path, None)
    assert ignored.covers("Extras/Templates/x.md")
    assert not ignored.covers("templates/x.md")
    assert not read_ignored(tmp_path, ()).covers("Extras/Templates/x.md")


TEMPLATER, QUICKADD = "plugins/templater-obsidian/data.json", "plugins/quickadd/data.json"


@pytest.mark.parametrize(
    ("name", "content", "templates", "notes"),
    [
        ("app.json", {}, ["templates/x.md", "Templates/x.md", "TEMPLATES/a/b.md"], ["My templates/x.md"]),
        ("templates.json", {"folder": "/Extras/Vorlagen/"}, ["extras/vorlagen/x.md"], ["Templates/x.md"]),
        ("templates.json", {"folder": "U\u0308ben"}, ["\u00dcben/x.md", "U\u0308ben/x.md"], ["Ube/x.md"]),
        ("templates.json", {"folder": "What?"}, ["What?/x.md"], ["Whats/x.md"]),
        ("templates.json", {"folder": "/"}, ["Templates/x.md"], ["x.md"]),
        ("templates.json", {"folder": "a/../.."}, ["Templates/x.md"], ["a/x.md"]),
        ("templates.json", {"folder": 3}, ["Templates/x.md"], ["3/x.md"]),
        (TEMPLATER, {"templates_folder": "Vorlagen"}, ["Vorlagen/t.md", "Templates/day.md"], ["t.md"]),
        (TEMPLATER, {"template_folder": "Old"}, ["Old/t.md"], ["t.md"]),
        (
            TEMPLATER,
            {
                "folder_templates": [{"folder": "People", "template": "sys/p.md"}, None],
                "startup_templates": ["s"],
            },
            ["sys/p.md", "s.md"],
            ["People/ann.md", "sys/q.md"],
        ),
        ("daily-notes.json", {"folder": "daily", "template": "sys/Day"}, ["sys/Day.md"], ["daily/1.md"]),
        ("daily-notes.json", {"template": "sys/Day.md"}, ["sys/day.md"], ["sys/Day 2.md"]),
        ("zk-prefixer.json", {"template": "sys/zk"}, ["sys/zk.md"], ["zk.md"]),
        ("plugins/calendar/data.json", {"weeklyNoteTemplate": "w"}, ["w.md"], ["w 2.md"]),
        (
            "plugins/periodic-notes/data.json",
            {"weekly": {"template": "w", "folder": "x"}},
            ["w.md"],
            ["x/w.md"],
        ),
        (QUICKADD, {"templateFolderPath": "Q"}, ["Q/a.md"], ["a.md"]),
        (
            QUICKADD,
            {"choices": [{"type": "Multi", "choices": [{"type": "Template", "templatePath": "sys/m.md"}]}]},
            ["sys/m.md"],
            ["sys/n.md"],
        ),
    ],
)
def test_template_folders_of_every_plugin_are_ignored(
    name: str, content: object, templates: list[str], notes: list[str], tmp_path: Path
) -> None:
    """behaviour 380"""
    settle(tmp_path, name, content)
    ignored = read_ignored(tmp_path, None)
    assert [path for path in templates if not ignored.covers(path)] == []
    assert [path for path in notes if ignored.covers(path)] == []
    assert not any(map(read_ignored(tmp_path, ()).covers, (*templates, *notes)))


def test_changed_settings_are_reread_and_broken_settings_change_nothing(tmp_path: Path) -> None:
    """behaviour 380"""
    settings = VaultSettings(tmp_path)
    files = NoteFiles(tmp_path, ignored=settings.read(), is_foreign=True, reread=settings.read_again)
    assert not files.refresh_ignored()
    settle(tmp_path, TEMPLATER, {"templates_folder": "Vorlagen"})
    assert files.refresh_ignored()
    assert files.ignored.covers("Vorlagen/x.md")
    settle(tmp_path, TEMPLATER, '{"templates_fol')
    assert not files.refresh_ignored()
    assert files.ignored.covers("Vorlagen/x.md")
    settle(tmp_path, TEMPLATER, {"templates_folder": "Other"})
    assert files.refresh_ignored()
    assert not files.ignored.covers("Vorlagen/x.md")


@pytest.mark.parametrize(
    "broken", ["{", "[1]", '{"userIgnoreFilters": 3}', "[" * 100_000, "x" * (LARGEST + 1)]
)
def test_broken_app_json_is_ignored(broken: str, tmp_path: Path) -> None:
    """Specification: vault, section 1."""
    settle(tmp_path, "app.json", broken)
    ignored = read_ignored(tmp_path, None)
    assert ignored.covers("templates/x.md")
    assert not ignored.covers("x.md")


def test_settings_file_that_is_a_pipe_does_not_block(tmp_path: Path) -> None:
    (tmp_path / ".obsidian").mkdir()
    os.mkfifo(tmp_path / ".obsidian" / "app.json")
    assert not read_ignored(tmp_path, None).covers("x.md")


def test_ignored_files_are_neither_listed_nor_found(tmp_path: Path) -> None:
    settle(tmp_path, "app.json", {"userIgnoreFilters": ["Old/", "/private/"]})
    for path in ("a.md", "Old/b.md", "x/private.md", "templates/t.md", "image.png", ".trash/c.md"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("text")
    files = NoteFiles(tmp_path, ignored=read_ignored(tmp_path, None), is_foreign=True)
    assert [file.path for file in files.list_notes()] == ["a.md"]
    assert find_note(files, "a.md") is not None
    assert find_note(files, "Old/b.md") is None
    assert find_note(files, "x/private.md") is None


def test_existing_notes_of_a_person_are_recognised(tmp_path: Path) -> None:
    assert find_own_notes(tmp_path) is None
    assert find_own_notes(tmp_path / "missing") is None
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.md").touch()
    assert find_own_notes(tmp_path) == "sub/x.md"
    (tmp_path / "a.md").touch()
    assert find_own_notes(tmp_path) == "a.md"
    (tmp_path / ".obsidian").mkdir()
    assert find_own_notes(tmp_path) == ".obsidian"


def test_missing_foreign_vault_folder_is_not_created(tmp_path: Path) -> None:
    files = NoteFiles(tmp_path / "gone", is_foreign=True)
    files.create_root()
    assert files.root_was_missing
    assert not (tmp_path / "gone").exists()
