"""The vector store on disk: generations, identities, damage and crashes."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from lithos.kernel.values.errors import IndexFailed
from lithos.search.index import vector_files
from lithos.search.index.chunk_rows import VectorEntry
from lithos.search.index.vectors import VectorIndex, stored_identity
from tests.fakes import Killed
from tests.search.index.test_vectors import IDENTITY, X, unit

OTHER = attrs.evolve(IDENTITY, model_sha256="cd" * 32)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / ".usearch"


@pytest.fixture
def saved(directory: Path) -> Path:
    """Save a store with note 1 (two chunks), note 2 (one chunk) and note 3 (no chunks)."""
    index = VectorIndex.open(directory, IDENTITY)
    index.apply(
        [
            VectorEntry(1, 11, unit([0, 1], [1, 0])),
            VectorEntry(2, 22, unit([4, 3])),
            VectorEntry(3, 33, unit()),
        ],
        [],
    )
    index.save()
    return directory


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_saved_store_opens_unchanged(saved: Path) -> None:
    index = VectorIndex.open(saved, IDENTITY)
    assert index.stamps() == {1: 11, 2: 22, 3: 33}
    assert index.chunk_count() == 3
    assert [(hit.serial, hit.chunk) for hit in index.search(X, 5, 0.3)] == [(1, 1), (2, 0)]
    assert (index.dirty, index.quarantined) == (False, None)
    assert index.last_updated is not None


def test_manifest_has_the_specified_content(saved: Path) -> None:
    """docs/spec/search.md §3."""
    manifest = json.loads((saved / "manifest.json").read_text())
    assert manifest["format"] == vector_files.FORMAT
    assert manifest["embedder"] == {"name": "tiny", "dims": 8, "dtype": "int8", "model_sha256": "ab" * 32}
    assert (manifest["chunks"], manifest["generation"]) == (3, 1)
    assert names(saved) == ["manifest.json", "notes.1.npy", "vectors.1.usearch"]


def test_each_save_creates_a_generation_that_replaces_the_previous_one(saved: Path) -> None:
    """An earlier version kept a third file for each generation of a large store."""
    (saved / "lists.1.npz").write_bytes(b"")
    index = VectorIndex.open(saved, IDENTITY)
    index.apply([], [1])
    assert index.dirty
    index.save()
    assert not index.dirty
    assert names(saved) == ["manifest.json", "notes.2.npy", "vectors.2.usearch"]
    assert VectorIndex.open(saved, IDENTITY).stamps() == {2: 22, 3: 33}


def test_unsaved_changes_are_lost_on_reopening(saved: Path) -> None:
    """docs/spec/lifecycle.md §3: rebuildable data may be outdated.

    The stamps show which notes need a repair.
    """
    VectorIndex.open(saved, IDENTITY).apply([VectorEntry(9, 99, unit([1, 0]))], [1, 2])
    assert VectorIndex.open(saved, IDENTITY).stamps() == {1: 11, 2: 22, 3: 33}


def test_empty_store_can_be_saved_and_filled_later(directory: Path) -> None:
    index = VectorIndex.open(directory, IDENTITY)
    assert (index.dirty, index.last_updated) == (True, None)
    index.save()
    again = VectorIndex.open(directory, IDENTITY)
    assert (again.stamps(), again.chunk_count(), again.search(X, 5, 0.0)) == ({}, 0, [])
    again.apply([VectorEntry(1, 1, unit([1, 0]))], [])
    assert len(again.search(X, 5, 0.5)) == 1


def test_last_updated_is_the_time_of_the_last_change(directory: Path) -> None:
    index = VectorIndex.open(directory, IDENTITY)
    before = datetime.now(UTC)
    index.apply([VectorEntry(1, 1, unit([1, 0]))], [])
    assert index.last_updated is not None
    assert before <= index.last_updated <= datetime.now(UTC)


@pytest.mark.parametrize(
    "other", [{"name": "x"}, {"dims": 9}, {"dtype": "float32"}, {"model_sha256": "ef" * 32}], ids=str
)
def test_vectors_of_another_identity_are_never_loaded(saved: Path, other: dict[str, Any]) -> None:
    """behaviour 185"""
    index = VectorIndex.open(saved, attrs.evolve(IDENTITY, **other))
    assert (index.stamps(), index.chunk_count(), index.quarantined) == ({}, 0, None)
    assert VectorIndex.open(saved, IDENTITY).stamps() == {1: 11, 2: 22, 3: 33}


def test_saving_an_index_of_a_new_model_replaces_the_store(saved: Path) -> None:
    """behaviour 185"""
    old = VectorIndex.open(saved, IDENTITY)
    new = VectorIndex.open(saved, OTHER)
    new.apply([VectorEntry(5, 55, unit([1, 0]))], [])
    assert stored_identity(saved) == IDENTITY
    old.apply([], [1])
    old.save()
    assert stored_identity(saved) == IDENTITY
    new.save()
    assert stored_identity(saved) == OTHER
    assert [hit.serial for hit in old.search(X, 5, 0.3)] == [2]
    assert VectorIndex.open(saved, OTHER).stamps() == {5: 55}
    assert VectorIndex.open(saved, IDENTITY).stamps() == {}


def test_stored_identity_is_empty_when_store_is_unreadable(saved: Path, tmp_path: Path) -> None:
    assert stored_identity(saved) == IDENTITY
    assert stored_identity(tmp_path / "absent") is None
    (saved / "manifest.json").write_text("{")
    assert stored_identity(saved) is None


@pytest.mark.parametrize("is_gone", [True, False])
def test_missing_manifest_starts_empty_and_is_replaced_by_save(saved: Path, is_gone: bool) -> None:
    path = saved / "manifest.json"
    other = json.dumps({**json.loads(path.read_text()), "format": 999})
    path.unlink() if is_gone else path.write_text(other)
    index = VectorIndex.open(saved, IDENTITY)
    assert (index.stamps(), index.quarantined, stored_identity(saved)) == ({}, None, None)
    index.save()
    assert names(saved) == ["manifest.json", "notes.2.npy", "vectors.2.usearch"]


def damage(data: bytes) -> list[bytes]:
    middle = len(data) // 2
    flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    ways = [b"", b"\x00\xffgarbage" * 9, data[:middle], data + b"\x00"]
    return [b"", b"not json", b"[]", b"{}", data[:middle]] if data.startswith(b"{") else [*ways, flipped]


@pytest.mark.parametrize("name", ["manifest.json", "notes.1.npy", "vectors.1.usearch"])
def test_damaged_store_is_set_aside_with_its_bytes(saved: Path, tmp_path: Path, name: str) -> None:
    """behaviour 65"""
    originals = {path.name: path.read_bytes() for path in saved.iterdir()}
    for number, data in enumerate(damage(originals[name])):
        copy = tmp_path / f"copy{number}"
        shutil.copytree(saved, copy)
        (copy / name).write_bytes(data)
        index = VectorIndex.open(copy, IDENTITY)
        assert index.stamps() == {}
        assert index.quarantined is not None
        assert re.fullmatch(re.escape(name) + r"\.corrupt-\d{8}T\d{6}Z(-\d+)?", index.quarantined.name)
        assert index.quarantined.read_bytes() == data
        assert name in str(index.quarantine_reason)
        others = {n: b for n, b in originals.items() if n != name}
        assert {p.name.split(".corrupt-")[0]: p.read_bytes() for p in copy.iterdir()} == {
            **others,
            name: data,
        }
        index.apply([VectorEntry(1, 1, unit([1, 0]))], [])
        index.save()
        assert VectorIndex.open(copy, IDENTITY).stamps() == {1: 1}
        assert index.quarantined.read_bytes() == data


@pytest.mark.parametrize("name", ["notes.1.npy", "vectors.1.usearch"])
def test_store_with_a_missing_data_file_is_set_aside(saved: Path, name: str) -> None:
    (saved / name).unlink()
    index = VectorIndex.open(saved, IDENTITY)
    assert index.quarantined is not None
    assert index.quarantined.name.startswith("manifest.json.corrupt-")
    assert index.stamps() == {}


def test_manifest_pointing_outside_its_directory_counts_as_damaged(saved: Path) -> None:
    manifest = json.loads((saved / "manifest.json").read_text())
    (saved / "manifest.json").write_text(
        json.dumps({**manifest, "files": {"../x": {"size": 1, "sha256": ""}}})
    )
    assert VectorIndex.open(saved, IDENTITY).quarantined is not None


STEPS = ["write_vectors", "write_notes", "describe", "replace", "delete"]


def crash_at(step: str, patch: pytest.MonkeyPatch) -> None:
    def crash(*_: object, **__: object) -> None:
        raise Killed

    def half(path: Path, *_: object) -> None:
        path.write_bytes(b"half")
        raise Killed

    match step:
        case "write_vectors":
            patch.setattr(VectorIndex, "_write_vectors", lambda _self, path: half(path))
        case "write_notes":
            patch.setattr(np, "save", half)
        case "describe":
            patch.setattr(vector_files, "describe_file", crash)
        case "replace":
            patch.setattr(Path, "replace", crash)
        case "delete":
            patch.setattr(Path, "unlink", crash)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("is_switch", [False, True])
def test_crash_during_save_leaves_one_store_without_mixing_models(
    saved: Path, step: str, is_switch: bool
) -> None:
    """behaviour 185: the store recovers from a crash during a save."""
    identity = OTHER if is_switch else IDENTITY
    index = VectorIndex.open(saved, identity)
    index.apply([VectorEntry(8, 88, unit([1, 0]))], [])
    old = {1: 11, 2: 22, 3: 33}
    new = ({} if is_switch else old) | {8: 88}
    with pytest.MonkeyPatch.context() as patch:
        crash_at(step, patch)
        with pytest.raises(Killed):
            index.save()
    is_saved = step == "delete"
    assert stored_identity(saved) == (identity if is_saved else IDENTITY)
    again = VectorIndex.open(saved, stored_identity(saved) or IDENTITY)
    assert (again.quarantined, again.stamps()) == (None, new if is_saved else old)
    if is_switch:
        assert VectorIndex.open(saved, IDENTITY if is_saved else OTHER).stamps() == {}
    again.save()
    assert len(names(saved)) == 3
    assert VectorIndex.open(saved, stored_identity(saved) or IDENTITY).stamps() == again.stamps()


def test_failed_save_is_reported_and_can_be_repeated(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = VectorIndex.open(saved, IDENTITY)
    index.apply([], [1])

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(IndexFailed, match="No space left"):
            index.save()
    assert index.dirty
    assert VectorIndex.open(saved, IDENTITY).stamps() == {1: 11, 2: 22, 3: 33}
    assert [hit.serial for hit in index.search(X, 5, 0.3)] == [2]
    index.save()
    assert VectorIndex.open(saved, IDENTITY).stamps() == {2: 22, 3: 33}


def test_save_recreates_a_deleted_directory(saved: Path) -> None:
    """docs/spec/notes.md §1: rebuildable paths may be deleted."""
    index = VectorIndex.open(saved, IDENTITY)
    shutil.rmtree(saved)
    index.save()
    assert VectorIndex.open(saved, IDENTITY).stamps() == {1: 11, 2: 22, 3: 33}
