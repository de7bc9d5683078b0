"""What Obsidian's settings say of a vault; broken ones are left out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lithos.stores.notes.files import NoteFiles
from lithos.stores.notes.lookup import find_note
from lithos.stores.notes.tree import LARGEST, find_own_notes, read_ignored


def settle(vault: Path, name: str, content: object) -> None:
    folder = vault / ".obsidian"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


def test_templates_are_ignored_where_obsidian_names_no_other_folder(tmp_path: Path) -> None:
    assert read_ignored(tmp_path, None).covers("templates/x.md")
    settle(tmp_path, "templates.json", {"folder": "Extras/Templates"})
    ignored = read_ignored(tmp_path, None)
    assert ignored.covers("Extras/Templates/x.md")
    assert not ignored.covers("templates/x.md")
    assert not read_ignored(tmp_path, ()).covers("Extras/Templates/x.md")


@pytest.mark.parametrize(
    "broken", ["{", "[1]", '{"userIgnoreFilters": 3}', "[" * 100_000, "x" * (LARGEST + 1)]
)
def test_a_broken_app_json_is_skipped(broken: str, tmp_path: Path) -> None:
    """Specification: vault, section 1."""
    settle(tmp_path, "app.json", broken)
    ignored = read_ignored(tmp_path, None)
    assert ignored.covers("templates/x.md")
    assert not ignored.covers("x.md")


def test_settings_that_are_a_pipe_do_not_hang(tmp_path: Path) -> None:
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


def test_own_notes_are_recognised(tmp_path: Path) -> None:
    assert find_own_notes(tmp_path) is None
    assert find_own_notes(tmp_path / "missing") is None
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.md").touch()
    assert find_own_notes(tmp_path) == "sub/x.md"
    (tmp_path / "a.md").touch()
    assert find_own_notes(tmp_path) == "a.md"
    (tmp_path / ".obsidian").mkdir()
    assert find_own_notes(tmp_path) == ".obsidian"


def test_a_foreign_folder_is_not_made(tmp_path: Path) -> None:
    files = NoteFiles(tmp_path / "gone", is_foreign=True)
    files.create_root()
    assert files.root_was_missing
    assert not (tmp_path / "gone").exists()
