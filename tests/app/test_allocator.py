"""Memory that was freed goes back to the system, where the C library is glibc."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from lithos.app import allocator

SCRIPT = """
import threading
from pathlib import Path
from lithos.app.allocator import limit_arenas, return_memory

def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1])

assert limit_arenas()
kept = []
def fill():
    kept.append([bytes([n % 256]) * 40_000 for n in range(2_000)])
threads = [threading.Thread(target=fill) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
full = resident()
kept.clear()
return_memory()
print(full, resident())
"""


@pytest.mark.slow
@pytest.mark.skipif(allocator._glibc() is None, reason="another C library")
def test_freed_memory_of_many_threads_goes_back_to_the_system() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60
    )
    full, after = map(int, done.stdout.split())
    assert full > 300_000
    assert after < full - 250_000, "KiB"


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    allocator._glibc.cache_clear()
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda _: SimpleNamespace(malloc=None))  # as musl and macOS
    assert not allocator.limit_arenas()
    assert not allocator.return_memory()
    allocator._glibc.cache_clear()
