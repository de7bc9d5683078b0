"""Attachments, which are copied completely and durably and never overwrite other bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lithos.imports.files import attachments
from lithos.imports.files.attachments import PREFIX, copy_attachment
from tests.fakes import Killed


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "source.bin"
    file.write_bytes(b"bytes" * 1000)
    return file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


def test_attachment_is_copied_once(root: Path, source: Path) -> None:
    assert copy_attachment(root, "a/b/x.bin", source, dry_run=True) == ("copied", "")
    assert list(root.iterdir()) == []
    assert copy_attachment(root, "a/b/x.bin", source, dry_run=False) == ("copied", "")
    target = root / "a/b/x.bin"
    assert target.read_bytes() == source.read_bytes()
    assert target.stat().st_mtime_ns == source.stat().st_mtime_ns
    assert copy_attachment(root, "a/b/x.bin", source, dry_run=False) == ("unchanged", "")
    assert os.listdir(target.parent) == ["x.bin"]


def test_attachment_does_not_overwrite_a_file_with_other_bytes(root: Path, source: Path) -> None:
    (root / "x.bin").write_bytes(b"mine")
    result, reason = copy_attachment(root, "x.bin", source, dry_run=False)
    assert (result, "stays unchanged" in reason) == ("conflict", True)
    assert (root / "x.bin").read_bytes() == b"mine"


@pytest.mark.parametrize("step", ["fsync", "link", "unlink", "sync_folder"])
def test_unfinished_attachment_copy_is_completed_by_the_next_run(
    root: Path, source: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Behaviour 241: the first run crashes at each step, and a second run follows."""

    def kill(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", kill)  # a killed process does not clean up
        if step in ("fsync", "link"):
            patch.setattr(os, step, kill)
        elif step == "sync_folder":
            patch.undo()
            patch.setattr(attachments, "sync_folder", kill)
        with pytest.raises(Killed):
            copy_attachment(root, "x.bin", source, dry_run=False)
    result, _ = copy_attachment(root, "x.bin", source, dry_run=False)
    assert result in ("copied", "unchanged")
    assert (root / "x.bin").read_bytes() == source.read_bytes()
    assert not [name for name in os.listdir(root) if name.startswith(PREFIX)]


def test_attachment_is_copied_to_a_file_system_without_links(
    root: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "no links")

    monkeypatch.setattr(os, "link", refuse)
    assert copy_attachment(root, "x.bin", source, dry_run=False) == ("copied", "")
    assert os.listdir(root) == ["x.bin"]


def test_attachment_is_not_written_outside_the_folder(root: Path, source: Path, tmp_path: Path) -> None:
    (root / "out").symlink_to(tmp_path)
    assert copy_attachment(root, "out/x.bin", source, dry_run=False)[0] == "failed"
    assert copy_attachment(root, "../x.bin", source, dry_run=False)[0] == "failed"
    assert copy_attachment(root, ".hidden/x.bin", source, dry_run=False)[0] == "failed"
    assert copy_attachment(root, "x.bin", tmp_path / "gone", dry_run=False)[0] == "failed"
    assert not (tmp_path / "x.bin").exists()
