"""Fallbacks for calls that only Linux has. Each call is removed, and its fallback is tested."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lithos.kernel import metrics, operating_system
from lithos.kernel.actors import threads as blocking
from lithos.kernel.metrics import Metrics
from lithos.notes.files import protection
from lithos.notes.files.protection import file_system_of, probe_protection
from lithos.notes.files.system_calls import UNSUPPORTED, KernelCalls
from lithos.notes.watching import notifications
from lithos.server.http import sockets
from lithos.upkeep.files import probes

HERE = str(Path(__file__).parent)


@pytest.fixture
def calls() -> KernelCalls:
    return KernelCalls()


@pytest.fixture
def libc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a C library without `renameat2` and `renamex_np`, such as musl before 1.2.5, or FreeBSD's."""
    monkeypatch.setattr(operating_system, "_libc", SimpleNamespace())


def test_exchange_of_names_is_reported_as_unsupported_without_renameat2(
    calls: KernelCalls, libc: None, tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("1")
    other.write_text("2")
    for call in (calls.exchange, calls.rename_new):
        with pytest.raises(OSError, match="Function not implemented") as refused:
            call(str(one), str(other))
        assert refused.value.errno in UNSUPPORTED
    assert (one.read_text(), other.read_text()) == ("1", "2")


def test_notes_are_put_in_place_by_links_without_renameat2(
    calls: KernelCalls, libc: None, tmp_path: Path
) -> None:
    found = probe_protection(calls, str(tmp_path))
    assert (found.exchange, found.no_replace, found.links) == (False, False, True)
    assert found.can_place
    assert list(tmp_path.iterdir()) == []


def test_file_counts_as_not_leased_when_leases_are_unsupported(
    calls: KernelCalls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operating_system, "LEASES", None)
    assert probe_protection(calls, str(tmp_path)).leases is False
    with open(tmp_path / "note", "wb") as file:
        with pytest.raises(OSError, match="Leases are not supported") as refused:
            calls.lease(file.fileno())
        assert refused.value.errno in UNSUPPORTED
        assert calls.is_leased(file.fileno()) is False
        calls.end_lease(file.fileno())


def test_leases_count_as_unsupported_when_any_constant_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("F_SETSIG", "F_SETLEASE", "F_GETLEASE"):
        with monkeypatch.context() as patch:
            patch.delattr(fcntl, name, raising=False)
            assert operating_system.find_leases() is None


def test_full_sync_is_used_if_available(
    calls: KernelCalls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS has F_FULLFSYNC. If a file system refuses it, `fsync` is used."""
    done: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda _: done.append("fsync"))
    with open(tmp_path / "note", "wb") as file:
        calls.fsync(file.fileno())
        monkeypatch.setattr(operating_system, "FULL_SYNC", 51)
        monkeypatch.setattr(fcntl, "fcntl", lambda _, number: done.append(f"fcntl {number}"))
        calls.fsync(file.fileno())

        def refuse(*_: Any) -> None:
            raise OSError(errno.ENOTSUP, "not here")

        monkeypatch.setattr(fcntl, "fcntl", refuse)
        calls.fsync(file.fileno())
    assert done == ["fsync", "fcntl 51", "fsync"]


def test_file_system_type_is_unknown_without_a_mount_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protection, "_MOUNTS", "/nowhere/mountinfo")
    assert file_system_of(HERE) is None
    assert protection.remote_file_system(HERE) is None


def test_process_that_listens_on_a_port_is_unknown_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(probes, "PROC", Path("/nowhere"))
        assert probes.name_listener(port) is None


def test_file_watches_are_not_counted_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "_DESCRIPTORS", "/nowhere/fd")
    assert notifications.count_watches() is None


def test_priority_is_not_lowered_when_threads_have_no_priorities(monkeypatch: pytest.MonkeyPatch) -> None:
    changed: list[tuple[int, ...]] = []
    monkeypatch.setattr(os, "setpriority", lambda *given: changed.append(given))
    monkeypatch.setattr(blocking, "_THREADS_HAVE_PRIORITIES", False)
    blocking._lower_priority()
    assert changed == []
    monkeypatch.setattr(blocking, "_THREADS_HAVE_PRIORITIES", True)
    blocking._lower_priority()
    assert changed == [(os.PRIO_PROCESS, threading.get_native_id(), blocking.NICENESS)]


async def test_server_listens_even_without_the_tcp_timeout_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(socket, "TCP_USER_TIMEOUT", raising=False)
    (listener,) = await sockets.open_listeners("127.0.0.1", 0)
    assert listener.socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    await listener.aclose()


def test_process_metrics_come_from_another_source_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_PROCESS", Path("/nowhere"))
    text = Metrics().render([]).decode()
    values = {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("process_")
    }
    assert set(values) == {
        "process_cpu_seconds_total", "process_max_fds", "process_open_fds", "process_resident_memory_bytes",
        "process_start_time_seconds",
    }  # fmt: skip
    assert all(value > 0 for value in values.values())
    monkeypatch.setattr(metrics, "_DESCRIPTORS", Path("/nowhere"))
    assert "process_open_fds" not in Metrics().render([]).decode()
