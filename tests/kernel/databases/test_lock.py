"""One owner per data directory."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lithos.kernel.databases.lock import (
    AlreadyOwned,
    OwnerLock,
    OwnerRecord,
    encode_owner,
    is_locked,
    is_owned,
    read_owner,
)

HOLDER = """
import sys
from pathlib import Path
from lithos.kernel.databases.lock import OwnerLock, OwnerRecord
lock = OwnerLock(Path(sys.argv[1]))
lock.acquire("2026-01-02T03:04:05+00:00")
lock.publish(OwnerRecord(4711, "elsewhere", "http://127.0.0.1:9/mcp", "2026-01-02T03:04:05+00:00", "t0ken"))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".lithos" / "lock"


def held(path: Path) -> OwnerLock:
    lock = OwnerLock(path)
    lock.acquire("now")
    return lock


@contextmanager
def another_owner(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start another process that holds the lock until its stdin is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def holder(path):
    with another_owner(path) as process:
        yield process


@pytest.mark.slow
def test_second_owner_is_refused_until_first_owner_dies(path, holder):
    with pytest.raises(AlreadyOwned) as caught:
        OwnerLock(path).acquire("now")
    message = str(caught.value)
    for part in ("4711", "elsewhere", "http://127.0.0.1:9/mcp", "2026-01-02T03:04:05+00:00", "--data-dir"):
        assert part in message
    assert "t0ken" not in message
    assert caught.value.owner == read_owner(path)
    assert is_owned(path)
    holder.kill()
    holder.wait()
    assert not is_owned(path), "the lock dies with its process, however it dies"
    lock = held(path)
    assert read_owner(path).pid == os.getpid()
    lock.release()


@pytest.mark.parametrize("holds", [fcntl.LOCK_EX, fcntl.LOCK_SH], ids=["owns", "asks"])
def test_owner_is_reported_immediately_but_a_probe_is_awaited(path, monkeypatch, holds):
    path.parent.mkdir(parents=True)
    waits = []
    with open(path, "wb") as other:
        fcntl.flock(other, holds)

        def wait(seconds):
            waits.append(seconds)
            fcntl.flock(other, fcntl.LOCK_UN)

        monkeypatch.setattr("lithos.kernel.databases.lock.time.sleep", wait)
        lock = OwnerLock(path)
        if holds == fcntl.LOCK_EX:
            with pytest.raises(AlreadyOwned):
                lock.acquire("now")
            assert not waits
        else:
            lock.acquire("now")
            assert len(waits) == 1
            lock.release()


@pytest.mark.parametrize(
    "leftover", [b"", b"{", b'{"pid": 1, "host": "gone", "started_at": "x"}', b"\xff\xfe", b"[]"]
)
def test_leftover_lock_file_is_ignored(path, leftover):
    path.parent.mkdir()
    path.write_bytes(leftover)
    path.chmod(0o644)
    lock = held(path)
    assert read_owner(path).started_at == "now"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lock.release()


def test_only_owner_may_read_the_lock_record(path):
    before = os.umask(0)
    try:
        lock = OwnerLock(path)
        lock.acquire("now")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lock.release()


def test_lock_record_is_replaced_as_a_whole(path):
    lock = held(path)
    assert read_owner(path).url is None
    long = OwnerRecord(1, "h" * 500, "http://x", "then", "secret")
    short = OwnerRecord(2, "h", None, "t")
    for record in (long, short):
        lock.publish(record)
        assert read_owner(path) == record
    assert "token" not in json.loads(path.read_bytes())
    lock.release()


def test_owner_only_address_is_marked_private(path):
    """In records of earlier servers, a token means that the address is private."""
    open_to_clients = OwnerRecord(1, "h", "http://x", "then", "secret")
    for record in (open_to_clients, OwnerRecord(1, "h", "http://x", "then", "secret", private=True)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_owner(record))
        assert read_owner(path) == record
        assert "secret" not in repr(record)
    old = {"pid": 1, "host": "h", "url": "http://x", "started_at": "then"}
    path.write_text(json.dumps(old))
    assert not read_owner(path).private
    path.write_text(json.dumps(old | {"token": "secret"}))
    assert read_owner(path).private


def test_lock_is_released_when_its_record_cannot_be_written(path, monkeypatch):
    """If the disk is full at the start, the next attempt of the same process gets the lock."""

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("lithos.kernel.databases.lock.overwrite", refuse)
        with pytest.raises(OSError, match="No space left"):
            OwnerLock(path).acquire("2026-01-02T03:04:05+00:00")
    lock = OwnerLock(path)
    lock.acquire("2026-01-02T03:04:05+00:00")
    lock.release()


def test_released_lock_is_free_and_has_no_owner_record(path):
    lock = held(path)
    lock.release()
    lock.release()
    assert not is_owned(path)
    assert read_owner(path) is None
    lock.acquire("again")
    assert read_owner(path).started_at == "again"
    lock.release()


def test_unused_data_directory_has_no_owner(path):
    assert not is_owned(path)
    assert read_owner(path) is None


@pytest.mark.parametrize(
    "content", [b"[1]", b'"x"', b"null", b'{"pid":"x","host":"h","started_at":"s"}', b'{"pid":[1]}']
)
def test_unreadable_lock_record_names_no_owner(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    assert read_owner(path) is None


def test_locked_folder_stays_locked_until_its_release(tmp_path, path):
    lock = held(path)
    assert is_locked(tmp_path)
    lock.release()
    assert not is_locked(tmp_path)
