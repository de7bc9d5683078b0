"""Contract of the system calls. The kernel and the fake file system give the same answers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lithos.notes.files import protection
from lithos.notes.files.protection import Protection, probe_protection
from lithos.notes.files.system_calls import UNNAMED, KernelCalls, SystemCalls
from tests.people.fake_files import NEEDED, FakeCalls

WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL


@pytest.fixture(params=["kernel", "fake"])
def calls(request: pytest.FixtureRequest) -> SystemCalls:
    return KernelCalls() if request.param == "kernel" else FakeCalls()


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the type of the file system, so that its system calls reveal its capabilities."""
    monkeypatch.setattr(protection, "file_system_of", lambda _: "ext4")


@pytest.fixture
def folder(tmp_path: Path, calls: SystemCalls) -> str:
    if isinstance(calls, KernelCalls) and not probe_protection(calls, str(tmp_path)).exchange:
        pytest.skip("this file system has not all calls")
    return str(tmp_path)


def put(calls: SystemCalls, path: str, data: bytes) -> str:
    descriptor = calls.open(path, WRITE)
    assert calls.write(descriptor, memoryview(data)) == len(data)
    calls.fsync(descriptor)
    calls.close(descriptor)
    return path


def get(calls: SystemCalls, path: str) -> bytes | None:
    try:
        descriptor = calls.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return calls.read(descriptor)
    finally:
        calls.close(descriptor)


def test_written_bytes_are_read_and_counted(calls: SystemCalls, folder: str) -> None:
    path = put(calls, f"{folder}/a", b"text")
    assert get(calls, path) == b"text"
    assert calls.lstat(path).st_size == 4
    with pytest.raises(FileExistsError):
        calls.open(path, WRITE)


def test_names_are_exchanged_moved_and_never_overwritten(calls: SystemCalls, folder: str) -> None:
    one, other = put(calls, f"{folder}/1", b"one"), put(calls, f"{folder}/2", b"other")
    calls.exchange(one, other)
    assert (get(calls, one), get(calls, other)) == (b"other", b"one")
    for take in (calls.rename_new, calls.link):
        with pytest.raises(FileExistsError):
            take(one, other)
    calls.rename_new(one, f"{folder}/3")
    calls.link(f"{folder}/3", f"{folder}/4")
    calls.rename(other, f"{folder}/4")
    assert [get(calls, f"{folder}/{name}") for name in "1234"] == [None, None, b"other", b"one"]
    for call in (calls.unlink, calls.pin, calls.lstat):
        with pytest.raises(FileNotFoundError):
            call(one)
    for change in (calls.exchange, calls.rename, calls.rename_new):
        with pytest.raises(FileNotFoundError):
            change(one, other)


def test_open_file_stays_unchanged_when_its_name_is_replaced(calls: SystemCalls, folder: str) -> None:
    path = put(calls, f"{folder}/a", b"first")
    pinned = calls.pin(path)
    calls.unlink(path)
    put(calls, path, b"second")
    assert not os.path.samestat(calls.fstat(pinned), calls.lstat(path))
    calls.close(pinned)


def test_unnamed_file_has_no_name_until_it_is_linked(calls: SystemCalls, folder: str) -> None:
    taken, path = put(calls, f"{folder}/a", b"theirs"), f"{folder}/b"
    descriptor = calls.open(folder, UNNAMED)
    assert calls.write(descriptor, memoryview(b"text")) == 4
    calls.fsync(descriptor)
    assert calls.fstat(descriptor).st_nlink == 0
    assert os.listdir(folder) == (["a"] if isinstance(calls, KernelCalls) else [])
    with pytest.raises(FileExistsError):
        calls.link_unnamed(descriptor, taken)
    calls.link_unnamed(descriptor, path)
    assert os.path.samestat(calls.fstat(descriptor), calls.lstat(path))
    calls.close(descriptor)
    assert (get(calls, taken), get(calls, path)) == (b"theirs", b"text")


def test_lease_is_refused_while_a_writer_has_the_file_open(calls: SystemCalls, folder: str) -> None:
    path = put(calls, f"{folder}/a", b"text")
    reading = calls.open(path, os.O_RDONLY)
    writing = calls.open(path, os.O_WRONLY)
    with pytest.raises(BlockingIOError):
        calls.lease(reading)
    calls.close(writing)
    calls.lease(reading)
    assert calls.is_leased(reading)
    calls.end_lease(reading)
    assert not calls.is_leased(reading)
    calls.close(reading)


def test_capabilities_are_detected_without_leaving_files(calls: SystemCalls, folder: str) -> None:
    assert probe_protection(calls, folder) == Protection(
        exchange=True, no_replace=True, links=True, leases=True, unnamed=True
    )
    assert os.listdir(folder) == [] or isinstance(calls, FakeCalls)
    assert not (isinstance(calls, FakeCalls) and calls.names)


@pytest.mark.parametrize(("capability", "call"), NEEDED.items())
def test_missing_capabilities_are_detected(capability: str, call: str, tmp_path: Path) -> None:
    found = probe_protection(FakeCalls(frozenset({call})), str(tmp_path))
    assert [name for name in NEEDED if not getattr(found, name)] == [capability]
