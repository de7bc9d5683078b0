"""A file system without locks is refused, unless the operator accepts it (docs/spec/lifecycle.md §2)."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

import pytest

from lithos.kernel.databases.lock import AlreadyOwned, NoLocks, OwnerLock, is_owned, lock_of


def without_locks(monkeypatch: pytest.MonkeyPatch, number: int, *, only_folders: bool = False) -> None:
    real = fcntl.flock

    def refuse(descriptor: int, operation: int) -> None:
        if only_folders and not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            real(descriptor, operation)
            return
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.parametrize("number", [errno.ENOTSUP, errno.ENOLCK, errno.EBADF])
@pytest.mark.parametrize("with_vault", [False, True])
def test_file_system_without_locks_is_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, with_vault: bool
) -> None:
    without_locks(monkeypatch, number, only_folders=with_vault)
    with pytest.raises(NoLocks, match="--no-lock") as refused:
        lock_of(tmp_path, tmp_path if with_vault else None).acquire("now")
    assert str(tmp_path) in str(refused.value)
    assert not is_owned(tmp_path / ".lithos" / "lock")


def test_option_no_lock_accepts_a_file_system_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_locks(monkeypatch, errno.ENOLCK)
    path = tmp_path / ".lithos" / "lock"
    lock = OwnerLock(path, needs_locks=False)
    lock.acquire("now")
    lock.confirm()
    assert is_owned(path), "the record counts, so that commands ask the server"
    lock.release()
    assert not is_owned(path)


def test_option_no_lock_excludes_a_second_owner_by_lock_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network file systems support locks only for files, not for folders."""
    without_locks(monkeypatch, errno.EBADF, only_folders=True)
    path = tmp_path / ".lithos" / "lock"
    lock = OwnerLock(path, needs_locks=False)
    lock.acquire("now")
    with pytest.raises(AlreadyOwned):
        OwnerLock(path, needs_locks=False).acquire("now")
    lock.release()


def test_unexpected_lock_errors_are_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_locks(monkeypatch, errno.EIO)
    path = tmp_path / ".lithos" / "lock"
    with pytest.raises(OSError, match="Input/output error"):
        OwnerLock(path, needs_locks=False).acquire("now")
    with pytest.raises(OSError, match="Input/output error"):
        is_owned(path)
