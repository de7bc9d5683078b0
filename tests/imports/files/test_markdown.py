"""Markdown folders as import sources (behaviours 240 and 241)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lithos.imports.files import markdown
from lithos.imports.files.kinds import UnknownKind, make_source, recognise
from lithos.imports.files.markdown import MarkdownSource
from lithos.imports.model.importing import (
    Degraded,
    ImportedAttachment,
    ImportRefused,
    Item,
    Malformed,
    Record,
)

SAMPLE = Path(__file__).parents[2] / "data" / "import" / "markdown"


def read(path: Path) -> list[Item]:
    return list(MarkdownSource().read(path))


def records(path: Path) -> dict[str, Record]:
    return {item.position: item for item in read(path) if isinstance(item, Record)}


def test_ignored_or_hidden_files_are_not_read_as_notes() -> None:
    assert not [item for item in read(SAMPLE) if "secret" in str(item) or "daily" in str(item)]


def test_other_files_are_read_as_attachments() -> None:
    found = [item for item in read(SAMPLE) if isinstance(item, ImportedAttachment)]
    assert [(item.path, item.size) for item in found] == [("img/map.png", 7)]


def test_damaged_files_are_reported_with_path_and_reason() -> None:
    """Behaviour 241"""
    items = read(SAMPLE)
    assert [item.position for item in items if isinstance(item, Malformed)] == ["Latin.md"]
    assert "UTF-8" in next(item.reason for item in items if isinstance(item, Malformed))
    (odd,) = [item for item in items if isinstance(item, Degraded)]
    assert odd.position == "Undated.md"
    assert "some day in May" in odd.reason


def test_file_above_the_size_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "LARGEST_FILE", 100)
    (tmp_path / "large.md").write_text("x" * 101)
    (tmp_path / "fits.md").write_text("x" * 100)
    items = read(tmp_path)
    assert [item.position for item in items if isinstance(item, Malformed)] == ["large.md"]
    assert list(records(tmp_path)) == ["fits.md"]


def test_outside_links_are_reported_and_pipes_do_not_block(tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    (tmp_path / "outside.bin").write_bytes(b"secret")
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    os.mkfifo(folder / "pipe.md")
    (folder / "note.md").write_text("text")
    items = read(folder)
    assert [type(item) for item in items] == [Record, Malformed]
    assert isinstance(items[1], Malformed)
    assert items[1].position == "link.bin"


def test_logseq_settings_are_not_read_as_notes(tmp_path: Path) -> None:
    for name in ("logseq/config.edn", "logseq/bak/old.md", "pages/one.md", "journals/2024_01_02.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [getattr(item, "position", None) for item in read(tmp_path)] == [
        "journals/2024_01_02.md",
        "pages/one.md",
    ]


def test_folder_with_notes_is_recognised_but_single_file_is_refused(tmp_path: Path) -> None:
    assert recognise(SAMPLE).kind == "markdown"
    (tmp_path / "x.bin").write_bytes(b"x")
    with pytest.raises(UnknownKind, match=r"--from: .*markdown"):
        recognise(tmp_path)
    with pytest.raises(ImportRefused, match="not a folder"):
        read(tmp_path / "x.bin")
    with pytest.raises(UnknownKind, match=r"Use one of: .*jsonl"):
        make_source("nonsense")
