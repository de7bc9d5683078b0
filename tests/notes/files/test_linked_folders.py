"""Linked folders: folders outside the notes folder whose files are notes below a prefix."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lithos.notes.files.files import NoteFiles
from lithos.notes.files.lookup import find_note, is_there, linked_identities
from lithos.notes.files.values import (
    FileChanged,
    FileOccupied,
    FileState,
    LinkedFile,
    Move,
    OutsideKnowledge,
    Put,
    Remove,
    digest_of,
)
from lithos.notes.linked.linked_folders import LINKED_NAME, LinkedFolder, LinkedFolders
from lithos.notes.model.plan import VanishRule, plan_vanished

PREFIX = "memory/claude-code/shop"


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / ".claude" / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_bytes(b"- one\n")
    return folder


@pytest.fixture
def files(tmp_path: Path, memory: Path):
    (tmp_path / "vault").mkdir()
    linked = LinkedFolders(tmp_path / LINKED_NAME)
    linked.replace([LinkedFolder(prefix=PREFIX, folder=str(memory), client="claude-code")], ())
    found = NoteFiles(tmp_path / "vault", linked=linked, place=tmp_path / "exchanged")
    yield found
    found.close()


def test_linked_files_are_listed_below_their_prefix(files, tmp_path):
    (tmp_path / "vault" / "a.md").write_text("a")
    assert [each.path for each in files.list_notes()] == ["a.md", f"{PREFIX}/MEMORY.md"]
    found = find_note(files, f"{PREFIX}/MEMORY.md")
    assert found is not None
    assert found.state.size == 6
    assert is_there(files, f"{PREFIX}/MEMORY.md")
    assert not is_there(files, f"{PREFIX}/other.md")


def test_linked_file_shadows_a_vault_file_with_the_same_path(files, tmp_path):
    shadowed = tmp_path / "vault" / PREFIX / "MEMORY.md"
    shadowed.parent.mkdir(parents=True)
    shadowed.write_text("of the vault")
    assert [each.state.size for each in files.list_notes()] == [6]
    assert files.read(f"{PREFIX}/MEMORY.md").data == b"- one\n"


def test_changes_are_made_in_the_linked_folder(files, memory, tmp_path):
    path = f"{PREFIX}/MEMORY.md"
    results = files.apply(
        [Put(path, b"- two\n", digest_of(b"- one\n")), Put(f"{PREFIX}/deep/topic.md", b"t", None)]
    )
    assert all(isinstance(each, FileState) for each in results)
    assert (memory / "MEMORY.md").read_bytes() == b"- two\n"
    assert (memory / "deep" / "topic.md").read_bytes() == b"t"
    assert files.apply([Remove(f"{PREFIX}/deep/topic.md", digest_of(b"t"))]) == [None]
    assert not (memory / "deep" / "topic.md").exists()
    assert not (tmp_path / "vault" / "memory").exists()
    assert [each.note for each in files.take_kept()] == [
        str(memory / "MEMORY.md"),
        str(memory / "deep" / "topic.md"),
    ]
    assert os.listdir(memory) == ["MEMORY.md", "deep"] or os.listdir(memory) == ["deep", "MEMORY.md"]


def test_unexpected_bytes_are_not_replaced_in_a_linked_folder(files, memory):
    [result] = files.apply([Put(f"{PREFIX}/MEMORY.md", b"x", digest_of(b"other"))])
    assert isinstance(result, FileChanged)
    [result] = files.apply([Put(f"{PREFIX}/MEMORY.md", b"x", None)])
    assert isinstance(result, FileOccupied)
    assert (memory / "MEMORY.md").read_bytes() == b"- one\n"


def test_note_moves_between_vault_and_linked_folder(files, memory, tmp_path):
    [result] = files.apply([Move(f"{PREFIX}/MEMORY.md", "kept.md", digest_of(b"- one\n"))])
    assert isinstance(result, FileState)
    assert (tmp_path / "vault" / "kept.md").read_bytes() == b"- one\n"
    assert os.listdir(memory) == []


@pytest.mark.parametrize("path", [f"{PREFIX}/../secret.md", f"{PREFIX}/out/secret.md"])
def test_paths_out_of_a_linked_folder_are_refused(files, memory, path):
    (memory.parent / "secret.md").write_text("secret")
    (memory / "out").symlink_to(memory.parent)
    with pytest.raises(OutsideKnowledge):
        files.read(path)
    [result] = files.apply([Put(path, b"x", None)])
    assert isinstance(result, OutsideKnowledge)
    assert [each.path for each in files.list_notes()] == [f"{PREFIX}/MEMORY.md"]


def test_linked_folder_does_not_widen_the_vault(files, memory, tmp_path):
    """A symlink in the vault that leads into the linked folder is still outside of the vault."""
    (tmp_path / "vault" / "way").symlink_to(memory)
    with pytest.raises(OutsideKnowledge):
        files.read("way/MEMORY.md")


def test_symlinked_file_in_a_linked_folder_is_not_removed(files, memory):
    (memory / "link.md").symlink_to("MEMORY.md")
    [result] = files.apply([Remove(f"{PREFIX}/link.md", digest_of(b"- one\n"), real=f"{PREFIX}/MEMORY.md")])
    assert isinstance(result, LinkedFile)
    assert result.real == f"{PREFIX}/MEMORY.md"


def test_missing_linked_folder_is_not_created(files, memory):
    (memory / "MEMORY.md").unlink()
    memory.rmdir()
    [result] = files.apply([Put(f"{PREFIX}/new.md", b"x", None)])
    assert isinstance(result, FileNotFoundError)
    assert not memory.exists()
    assert files.linked.away() == (f"{PREFIX}/",)


def test_notes_of_an_absent_linked_folder_are_kept():
    vanished = [f"{PREFIX}/{name}.md" for name in "abc"]
    rule = VanishRule(away=(f"{PREFIX}/",))
    assert plan_vanished([*vanished, "x.md"], 30, rule) == set(vanished)


def test_empty_linked_folder_counts_as_absent(files, memory):
    assert files.linked.away() == ()
    (memory / "MEMORY.md").unlink()
    assert files.linked.away() == (f"{PREFIX}/",)


def test_list_of_linked_folders_is_read_again(files, tmp_path, memory):
    other = LinkedFolders(tmp_path / LINKED_NAME)
    assert other.refresh()
    assert not other.refresh()
    assert [each.prefix for each in other.listed] == [PREFIX]
    files.linked.replace([], [PREFIX])
    assert other.refresh()
    assert other.listed == ()
    assert other.has_left(f"{PREFIX}/MEMORY.md")
    assert linked_identities(files) == ()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"format":1,"former":[],"folders":[{"prefix":"a/..","folder":"x","client":"c"}]}'],
)
def test_broken_list_of_linked_folders_keeps_the_last_list(files, tmp_path, text):
    (tmp_path / LINKED_NAME).write_text(text)
    assert not files.linked.refresh()
    assert [each.prefix for each in files.linked.listed] == [PREFIX]


def test_recovery_restores_an_aside_file_of_a_linked_folder(files, memory, tmp_path):
    """A process died between the two steps of a removal."""
    (memory / "MEMORY.md").rename(memory / ".lithos-00000000.0.0.MEMORY.md.aside")
    assert files.recover(lambda kept, data: None) == 1
    assert (memory / "MEMORY.md").read_bytes() == b"- one\n"
    assert files.relative(str(memory / "MEMORY.md")) == f"{PREFIX}/MEMORY.md"
    assert files.relative(str(tmp_path / "vault" / "x.md")) == "x.md"
