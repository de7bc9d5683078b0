"""Note previews: contents, searches and removal."""

from __future__ import annotations

from pathlib import Path

from lithos.notes.catalogue.first_lines import LINES, FirstLooks
from lithos.notes.files.files import NoteFiles
from lithos.notes.format.document import derive_id
from lithos.text.yaml.vault_style import PLAIN, VaultStyle
from tests.servers import put_note


def looks_at(tmp_path: Path, style: VaultStyle = PLAIN) -> FirstLooks:
    looks = FirstLooks(NoteFiles(tmp_path / "knowledge"), style)
    looks.read()
    return looks


def test_previews_are_found_by_title_file_name_and_first_lines(tmp_path: Path) -> None:
    """behaviour 385"""
    put_note(tmp_path, "a/Straße.md", "---\nid: my-id\ntitle: Roads\n---\n# Ways\n\nGranite and basalt.\n")
    put_note(tmp_path, "b.md", "Granite alone. " + "x " * 1_000 + "marble")
    looks = looks_at(tmp_path)
    assert [(look.path, look.id, look.title) for look, _ in looks.find("strasse", 9)] == [
        ("a/Straße.md", "my-id", "Ways")
    ]
    assert [look.path for look, _ in looks.find("the granite and basalt", 9)] == ["a/Straße.md", "b.md"]
    assert [look.path for look, _ in looks.find("granite", 9, "a/")] == ["a/Straße.md"]
    assert [look.id for look, _ in looks.find("alone", 9)] == [derive_id("b.md")]
    assert looks.find("marble", 9) == looks.find("", 9) == []
    (look, score), *_ = looks.find("alone", 9)
    assert len(look.lines) <= LINES
    assert 0 < score <= 1
    assert [look.title for look, _ in looks_at(tmp_path, VaultStyle.of_foreign()).find("ways", 9)] == [
        "Roads"
    ]


def test_dropped_previews_are_not_found_or_read_again(tmp_path: Path) -> None:
    put_note(tmp_path, "b.md", "Granite")
    looks = looks_at(tmp_path)
    looks.forget()
    assert looks.find("granite", 9) == []
    looks.read()
    assert looks.find("granite", 9) == []
