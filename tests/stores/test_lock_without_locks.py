"""One owner per data directory where the file system knows no locks."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import subprocess
import sys

import pytest

from lithos.stores.lock import AlreadyOwned, OwnerLock, is_owned
from lithos.stores.owner_record import FRESH, REFRESH, OwnerRecord, read_owner
from tests.stores.test_lock import held

NOW = 1_800_000_000.0


class UnixClock:
    """Unix time that moves only when told to."""

    now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return UnixClock()


@pytest.fixture(params=[errno.ENOTSUP, errno.ENOLCK])
def path(tmp_path, monkeypatch, request):
    def refuse(descriptor, operation):
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", refuse)
    (tmp_path / ".lithos").mkdir()
    return tmp_path / ".lithos" / "lock"


def leave_record(path, *, pid, host, at):
    record = {"pid": pid, "host": host, "url": "http://x:1", "started_at": "then"}
    path.write_text(json.dumps(record))
    os.utime(path, (at, at))


def test_the_first_takes_it_and_the_second_is_refused_until_it_is_released(path, clock):
    lock = held(path, clock)
    assert lock._needs_refresh
    assert is_owned(path, clock)
    with pytest.raises(AlreadyOwned) as caught:
        held(path, clock)
    assert str(os.getpid()) in str(caught.value)
    lock.publish(OwnerRecord(os.getpid(), socket.gethostname(), "http://127.0.0.1:9", "now", "secret"))
    assert read_owner(path).url == "http://127.0.0.1:9"
    lock.release()
    assert not is_owned(path, clock)
    held(path, clock).release()
    assert [file.name for file in path.parent.iterdir()] == ["lock"]


@pytest.mark.slow
def test_a_live_process_of_this_host_owns_however_old_its_record_and_a_dead_one_does_not(path, clock):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        leave_record(path, pid=process.pid, host=socket.gethostname(), at=NOW - 10 * FRESH)
        assert is_owned(path, clock)
        with pytest.raises(AlreadyOwned):
            held(path, clock)
    finally:
        process.kill()
        process.communicate()
    assert not is_owned(path, clock)
    held(path, clock).release()


def test_a_leftover_with_the_number_of_this_process_is_no_obstacle(path, clock):
    leave_record(path, pid=os.getpid(), host=socket.gethostname(), at=NOW)
    assert not is_owned(path, clock)
    held(path, clock).release()


def test_another_host_owns_for_a_minute_after_it_said_so(path, clock):
    leave_record(path, pid=1, host="elsewhere", at=NOW)
    clock.now = NOW + FRESH - 1
    assert is_owned(path, clock)
    with pytest.raises(AlreadyOwned, match="elsewhere"):
        held(path, clock)
    clock.now = NOW + FRESH
    assert not is_owned(path, clock)
    held(path, clock).release()


def test_an_owner_that_refreshes_in_time_stays_fresh(path, clock):
    lock = held(path, clock)
    for _ in range(10):
        clock.now += REFRESH
        lock.confirm()
        assert clock.now - path.stat().st_mtime < FRESH - REFRESH
    lock.release()


def test_an_owner_that_slept_too_long_learns_that_another_took_over(path, clock):
    lock = held(path, clock)
    leave_record(path, pid=1, host="elsewhere", at=NOW + 2 * FRESH)
    with pytest.raises(AlreadyOwned, match="elsewhere"):
        lock.confirm()
    lock.release()
    assert read_owner(path).host == "elsewhere", "the record of the other is not taken away"


def test_two_never_decide_at_once_and_a_crash_while_deciding_is_forgotten(path, clock):
    door = path.with_name("lock.taking")
    door.touch()
    os.utime(door, (NOW, NOW))
    with pytest.raises(AlreadyOwned):
        held(path, clock)
    clock.now = NOW + FRESH
    with pytest.raises(AlreadyOwned):
        held(path, clock)  # clears the way
    held(path, clock).release()


def test_other_failures_of_the_lock_are_told(tmp_path, monkeypatch):
    def fail(descriptor, operation):
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(OSError, match="broken disk"):
        OwnerLock(tmp_path / "lock").acquire("now")
    with pytest.raises(OSError, match="broken disk"):
        is_owned(tmp_path / "lock")


def lose(path):
    path.unlink()


def copy(path):
    fresh = path.with_name("copy")
    fresh.write_bytes(path.read_bytes())
    fresh.rename(path)


def go_back_to_the_record_of_a_process_that_has_gone(path):
    leave_record(path, pid=999_999_999, host=socket.gethostname(), at=NOW)


@pytest.mark.parametrize("damage", [lose, copy, go_back_to_the_record_of_a_process_that_has_gone])
def test_a_lost_record_is_written_again(path, clock, damage):
    lock = held(path, clock)
    record = OwnerRecord(os.getpid(), socket.gethostname(), "http://127.0.0.1:9", "now", "secret")
    lock.publish(record)
    damage(path)
    for _ in range(3):
        clock.now += REFRESH
        lock.confirm()
        assert read_owner(path) == record
        assert clock.now - path.stat().st_mtime < FRESH - REFRESH
    assert "written again" in lock.trouble
    assert is_owned(path, clock)
    with pytest.raises(AlreadyOwned):
        held(path, clock)
    lock.release()
    assert not is_owned(path, clock)
