"""Recordings are compared byte for byte, and what differs is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.golden import compare


def recorded(folder: Path, **entries: str) -> Path:
    folder.mkdir()
    (folder / "calls.json").write_text(json.dumps(entries))
    return folder


def test_equal_recordings_do_not_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (recorded(tmp_path / name, read='{"title":"A"}') for name in "ab")
    assert compare(first, second) == 0
    assert capsys.readouterr().out == "nothing differs\n"


def test_a_changed_byte_and_a_missing_entry_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = recorded(tmp_path / "a", read='{"title":"A","rows":[]}', write="{}", same="1")
    second = recorded(tmp_path / "b", read='{"title":"B","rows":[]}', same="1")
    assert compare(first, second) == 1
    said = capsys.readouterr().out
    assert "=== calls.json: read" in said
    assert '-{"title":"A",' in said
    assert '+{"title":"B",' in said
    assert "=== calls.json: write" in said
    assert "+(missing)" in said
    assert "same" not in said
    assert said.endswith("2 entries differ\n")
