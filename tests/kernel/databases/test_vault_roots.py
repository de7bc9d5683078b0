"""Checks that the folders of several vaults are separate (docs/spec/cli-config.md §3.1)."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from lithos.kernel.databases.vault_roots import (
    Kind,
    VaultFolder,
    VaultsOverlap,
    check_vault_roots,
    find_overlaps,
)

_inodes = itertools.count(100)


def at(vault: str, path: str, kind: Kind = "notes", inode: int | None = None, *above: int) -> VaultFolder:
    identity = (1, next(_inodes) if inode is None else inode)
    return VaultFolder(vault, kind, Path(path), path, identity, tuple((1, each) for each in above))


def told(*places: VaultFolder) -> list[str]:
    return list(find_overlaps(places))


def test_sibling_vault_folders_count_as_separate() -> None:
    """behaviour 296"""
    assert told(at("a", "/x/a"), at("b", "/x/ab"), at("a", "/s/a", "data"), at("b", "/s/b", "data")) == []


def test_same_and_nested_folders_are_reported_with_both_names() -> None:
    """behaviour 296"""
    for one, other, relation in (
        ("/x", "/x", "/x of vault a is also the folder /x of vault b"),
        ("/x/y", "/x", "/x/y of vault a is inside of the folder /x of vault b"),
        ("/x", "/x/y", "/x/y of vault b is inside of the folder /x of vault a"),
        ("/x", "/", "/x of vault a is inside of the folder / of vault b"),
    ):
        (trouble,) = told(at("a", one), at("b", other))
        assert relation in trouble
        assert "Serve them as one vault" in trouble


def test_mounts_and_spellings_are_detected_by_device_and_inode() -> None:
    """behaviour 296"""
    assert "is also" in told(at("a", "/x", "notes", 5), at("b", "/X", "notes", 5))[0]
    assert "is inside of" in told(at("a", "/x", "notes", 5), at("b", "/mnt/y", "notes", 6, 5, 2))[0]
    missing = VaultFolder("b", "notes", Path("/m"), "/m", None, ((1, 2),))
    assert told(at("a", "/x", "notes", 5), missing) == []


def test_data_directory_inside_a_vault_or_shared_is_refused() -> None:
    """behaviour 296"""
    (trouble,) = told(at("a", "/x"), at("b", "/x/.state", "data"))
    assert "The data directory /x/.state of vault b is inside of the folder /x of vault a" in trouble
    assert "data_dir" in trouble
    assert len(told(at("a", "/x"), at("a", "/x/.state", "data"))) == 1
    assert told(at("a", "/d/knowledge"), at("a", "/d", "data")) == []
    assert len(told(at("a", "/d/knowledge"), at("b", "/d", "data"))) == 1
    assert "is also" in told(at("a", "/d", "data"), at("b", "/d", "data"))[0]


def test_symlinks_to_vault_folders_are_followed(tmp_path: Path) -> None:
    """behaviour 296"""
    notes = tmp_path / "notes" / "deep"
    notes.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "notes")
    (tmp_path / "state").symlink_to(notes)
    beside = tmp_path / "beside"
    for other, data in ((tmp_path / "link", beside), (tmp_path / "link" / "deep", beside)):
        with pytest.raises(VaultsOverlap, match=r"of vault work .* of vault home"):
            check_vault_roots([("work", notes, tmp_path / "d"), ("home", other, data)])
    missing = tmp_path / "state" / "home"
    with pytest.raises(VaultsOverlap, match="data directory"):
        check_vault_roots([("work", notes, tmp_path / "d"), ("home", tmp_path / "x", missing)])
    # A missing folder does not prevent the start.
    check_vault_roots([("work", notes, tmp_path / "d"), ("home", tmp_path / "none", beside)])
