"""One owner per vault, regardless of its data directory. No files are created in the vault."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lithos.kernel.databases.lock import (
    AlreadyOwned,
    OwnerLock,
    OwnerRecord,
    VaultOwned,
    lock_of,
    serves_other,
)

NOW = "2026-11-22T16:00:00Z"


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "vault"
    folder.mkdir()
    return folder


def lock(tmp_path: Path, name: str, vault: Path) -> OwnerLock:
    return lock_of(tmp_path / name, vault, {"XDG_STATE_HOME": str(tmp_path / "state")})


@pytest.mark.parametrize("is_link", [False, True])
def test_second_data_directory_for_one_vault_is_refused(is_link: bool, tmp_path: Path, vault: Path) -> None:
    """Behaviour 249: the lock is on the folder itself, regardless of the path used to open it."""
    other = vault
    if is_link:
        other = tmp_path / "link"
        other.symlink_to(vault)
    first, second = lock(tmp_path, "one", vault), lock(tmp_path, "two", other)
    first.acquire(NOW)
    first.publish(OwnerRecord(os.getpid(), "here", "http://127.0.0.1:1", NOW, "secret"))
    with pytest.raises(VaultOwned) as refused:
        second.acquire(NOW)
    told = str(refused.value)
    for part in (str(other), str(os.getpid()), "here", NOW, "http://127.0.0.1:1", str(tmp_path / "one")):
        assert part in told
    assert "secret" not in told
    plain = OwnerLock(tmp_path / "two" / ".lithos" / "lock")  # the refused owner has released this lock
    plain.acquire(NOW)
    plain.release()
    assert "secret" not in "".join(
        path.read_text() for path in (tmp_path / "state").rglob("*") if path.is_file()
    )
    first.release()
    second.acquire(NOW)
    second.release()
    assert list(vault.iterdir()) == []


def test_second_owner_of_data_directory_and_vault_is_refused(tmp_path: Path, vault: Path) -> None:
    """A second stdio server then bridges to the first server."""
    first, second = lock(tmp_path, "one", vault), lock(tmp_path, "one", vault)
    first.acquire(NOW)
    with pytest.raises(AlreadyOwned) as refused:
        second.acquire(NOW)
    assert not isinstance(refused.value, VaultOwned)
    first.release()


def test_leftover_record_is_ignored_and_reports_no_owner(tmp_path: Path, vault: Path) -> None:
    first = lock(tmp_path, "one", vault)
    first.acquire(NOW)
    (record,) = (tmp_path / "state" / "lithos" / "vaults").iterdir()
    first.release()
    assert not record.exists()
    record.write_text('{"pid": 1, "host": "elsewhere", "data_dir": "/old"}')
    second, third = lock(tmp_path, "two", vault), lock(tmp_path, "three", vault)
    second.acquire(NOW)
    with pytest.raises(VaultOwned) as refused:
        third.acquire(NOW)
    assert "elsewhere" not in str(refused.value)
    second.release()


def test_unwritable_state_home_is_ignored_when_folders_support_locks(tmp_path: Path, vault: Path) -> None:
    (tmp_path / "state").write_text("a file")
    first, second = lock(tmp_path, "one", vault), lock(tmp_path, "two", vault)
    first.acquire(NOW)
    with pytest.raises(VaultOwned):
        second.acquire(NOW)
    first.release()


def test_owner_record_distinguishes_the_owner_of_another_vault(
    tmp_path: Path, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that requested one vault is not bridged to the server of another vault."""
    monkeypatch.setattr("lithos.kernel.databases.lock._STARTING", 0.0)
    other = tmp_path / "other"
    other.mkdir()
    first = lock(tmp_path, "one", vault)
    first.acquire(NOW)
    assert not serves_other(vault)
    assert serves_other(other)
    first.release()


def test_missing_vault_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        lock(tmp_path, "one", tmp_path / "gone").acquire(NOW)
    assert not (tmp_path / "gone").exists()


def test_replaced_vault_folder_is_locked_as_well(tmp_path: Path, vault: Path) -> None:
    first, second = lock(tmp_path, "one", vault), lock(tmp_path, "two", vault)
    first.acquire(NOW)
    vault.rename(tmp_path / "moved")
    vault.mkdir()
    first.confirm()
    with pytest.raises(VaultOwned):
        second.acquire(NOW)
    first.release()
