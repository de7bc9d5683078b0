"""The registry of the data directory, and the move of an older coordination database."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lithos.kernel.databases.migrations import NewerLayout, migrate

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / ".lithos").mkdir()
    return tmp_path


def registry_of(data: Path) -> Path:
    return data / ".lithos" / "migrations" / "registry.json"


def test_new_data_directory_records_its_layout_version_once(data: Path) -> None:
    migrate(data, NOW)
    first = registry_of(data).read_bytes()
    migrate(data, NOW.replace(year=2027))
    assert registry_of(data).read_bytes() == first
    assert json.loads(first) == {
        "current_version": 2,
        "applied": [
            {"from": 1, "to": 2, "name": "register", "applied_at": "2026-01-02T03:04:05.000000+00:00"}
        ],
    }


def test_root_database_is_moved_with_its_companion_files(data: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        (data / f"coordination.db{suffix}").write_text(f"bytes{suffix}")
    migrate(data, NOW)
    for suffix in ("", "-wal", "-shm"):
        assert (data / ".lithos" / f"coordination.db{suffix}").read_text() == f"bytes{suffix}"
        assert not (data / f"coordination.db{suffix}").exists()


def test_root_database_is_not_moved_when_the_target_exists(data: Path) -> None:
    (data / "coordination.db").write_text("old")
    (data / ".lithos" / "coordination.db").write_text("new")
    migrate(data, NOW)
    assert (data / "coordination.db").read_text() == "old"
    assert (data / ".lithos" / "coordination.db").read_text() == "new"


def test_damaged_registry_is_set_aside(data: Path) -> None:
    registry_of(data).parent.mkdir()
    registry_of(data).write_text('{"current_version": "x"')
    migrate(data, NOW)
    assert json.loads(registry_of(data).read_text())["current_version"] == 2
    assert registry_of(data).with_name("registry.json.unreadable").read_text() == '{"current_version": "x"'


def test_newer_layout_is_refused_and_kept_unchanged(data: Path) -> None:
    registry_of(data).parent.mkdir()
    registry_of(data).write_text('{"current_version": 99, "applied": []}')
    with pytest.raises(NewerLayout, match="newer Lithos"):
        migrate(data, NOW)
    assert registry_of(data).read_text() == '{"current_version": 99, "applied": []}'
