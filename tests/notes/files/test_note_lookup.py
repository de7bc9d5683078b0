"""Lookup of single files, which must agree with the listing."""

from __future__ import annotations

import os

import pytest

from lithos.notes.files import lookup
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.lookup import (
    UNKNOWN_STATE,
    AliasedPath,
    current_state,
    find_note,
    folder_identity,
    is_same_file,
    is_there,
)


@pytest.fixture
def files(tmp_path):
    files = NoteFiles(tmp_path / "knowledge")
    files.create_root()
    (files.root / "sub").mkdir()
    for path in ("a.md", "sub/b.md", "c.txt", ".d.md", "sub/.e.md"):
        (files.root / path).write_text(path)
    (tmp_path / "outside.md").write_text("outside")
    return files


def test_lookup_finds_exactly_the_listed_notes(files, tmp_path):
    (files.root / "in.md").symlink_to("a.md")
    (files.root / "out.md").symlink_to(tmp_path / "outside.md")
    (files.root / "folder.md").mkdir()
    listed = files.list_notes()
    names = ["a.md", "sub/b.md", "c.txt", ".d.md", "sub/.e.md", "in.md", "out.md", "folder.md", "no.md"]
    found = [file for path in names if (file := find_note(files, path)) is not None]
    assert sorted(found, key=lambda file: file.path) == listed
    assert [file.path for file in listed] == ["a.md", "in.md", "sub/b.md"]
    assert find_note(files, "a.md/b.md") is None


def test_lookup_behind_a_symlinked_folder_requires_a_listing(files):
    (files.root / "alias").symlink_to("sub")
    with pytest.raises(AliasedPath):
        find_note(files, "alias/b.md")


def test_old_spelling_counts_as_missing_on_a_case_insensitive_disk(files, monkeypatch):
    """A case-insensitive disk opens every spelling of a name, but lists only one."""
    real = os.stat
    monkeypatch.setattr(lookup.os, "stat", lambda path: real(str(path).replace("A.md", "a.md")))
    assert is_there(files, "a.md")
    assert not is_there(files, "A.md")


def test_two_spellings_name_one_file_but_two_links_do_not(files, monkeypatch):
    (files.root / "soft.md").symlink_to("a.md")
    assert not is_same_file(files, "a.md", "soft.md")
    assert not is_same_file(files, "a.md", "sub/b.md")
    assert not is_same_file(files, "a.md", "none.md")
    os.link(files.root / "a.md", files.root / "hard.md")
    assert not is_same_file(files, "a.md", "hard.md")
    (files.root / "hard.md").unlink()
    real = os.lstat
    monkeypatch.setattr(lookup.os, "lstat", lambda path: real(str(path).replace("A.md", "a.md")))
    assert is_same_file(files, "a.md", "A.md")


def test_file_that_cannot_be_examined_does_not_count_as_deleted(files, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    assert current_state(files, "none.md") is None
    monkeypatch.setattr(lookup.os, "stat", refuse)
    assert current_state(files, "a.md") == UNKNOWN_STATE
    assert is_there(files, "a.md")


def test_replaced_folder_gets_a_new_identity(files, tmp_path):
    before = folder_identity(files)
    files.root.rename(tmp_path / "away")
    assert folder_identity(files) is None
    files.root.mkdir()
    assert folder_identity(files) not in (None, before)
