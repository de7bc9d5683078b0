"""With glibc, freed memory is returned to the system, and large blocks leave no gaps in the arenas."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from lithos.kernel.actors import allocator
from lithos.search.indexing.ports import FulltextPort
from lithos.text.chunk import ChunkSizes

MIB = 1024 * 1024
ON_GLIBC = pytest.mark.skipif(
    allocator._glibc() is None or not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="another C library"
)

RETURNED = """
import threading
from pathlib import Path
from lithos.kernel.actors.allocator import limit_arenas, return_memory

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

#: Program that prints how many of 32 blocks of 2 MiB are mapped separately, and then whether one more block
#: is.
MAPPED = """
import ctypes
from lithos.kernel.actors.allocator import large_blocks_apart
from tests.kernel.actors.test_allocator import allocated

take = ctypes.CDLL(None).malloc
take.restype, take.argtypes = ctypes.c_void_p, [ctypes.c_size_t]

def mapped(number):
    before = allocated().hblks
    for _ in range(number):
        assert take(2 << 20)
    return allocated().hblks - before

with large_blocks_apart():
    with large_blocks_apart():
        pass
    apart = mapped(32)
print(apart, mapped(1))
"""

#: Program that creates and deletes notes one by one, with small, longer-lived blocks of the event loop in
#: between.
COMMITTED = """
import random, sys
from pathlib import Path
from lithos.kernel.actors.allocator import limit_arenas
from lithos.search.indexing.ports import FulltextPort
from lithos.search.index.fulltext import FulltextIndex
from tests.kernel.actors.test_allocator import allocated
from tests.kernel.databases.fulltext_entries import entry

class Port(FulltextPort):
    def __init__(self, index):
        self.index, self._sizes, self._entities = index, None, None

class Index:
    def __init__(self, index):
        self.index, self.next = index, 0
    def apply(self, upserts, removals):
        self.next += 1
        text = " ".join(chance.choice(words) for _ in range(600))
        self.index.apply([entry(self.next, text)], [self.next - 40])

assert limit_arenas()
chance, kept = random.Random(1), {}
words = [f"word{number}" for number in range(3_000)]
index = FulltextIndex.open(Path(sys.argv[1]))
port = Port(Index(index))
for _ in range(150):
    for _ in range(300):
        kept[chance.randrange(10_000)] = bytes(chance.choice((600, 1_000, 3_000, 8_000)))
    port.apply([], [])
print(allocated().fordblks)
index.close()
"""

#: Program that fills the caches with 100 commits, then prints the memory that 500 more commits add.
REMEMBERED = """
import sys
from pathlib import Path
from lithos.kernel.actors.allocator import limit_arenas
from lithos.search.index import fulltext
from tests.kernel.actors.test_allocator import allocated
from tests.kernel.databases.fulltext_entries import entry

assert limit_arenas()
fulltext.RENEWED_AFTER = 50
index = fulltext.FulltextIndex.open(Path(sys.argv[1]))
for number in range(601):
    index.apply([entry(number, "granite harbour")], [number - 40])
    if number == 100:
        before = allocated().uordblks
print(allocated().uordblks - before)
index.close()
"""


class Mallinfo(ctypes.Structure):
    """The `struct mallinfo2` of malloc.h:

    `hblks` blocks are mapped, `fordblks` bytes are free in the arenas.
    """

    _fields_: ClassVar = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
            "keepcost",
        )
    ]  # fmt: skip


def allocated() -> Any:
    """Return the number of bytes that malloc reports as allocated."""
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = Mallinfo
    return library.mallinfo2()


def run(script: str, *arguments: str) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True, timeout=120
    )
    return [int(number) for number in done.stdout.split()]


@pytest.mark.slow
@ON_GLIBC
def test_freed_memory_of_many_threads_is_returned_to_system() -> None:
    full, after = run(RETURNED)
    assert full > 300_000
    assert after < full - 250_000, "KiB"


@pytest.mark.slow
@ON_GLIBC
def test_fulltext_commits_leave_no_gaps_in_arenas(tmp_path: Any) -> None:
    """Without `large_blocks_apart`, about 20 MiB of the arenas stay free and are never used again."""
    (free,) = run(COMMITTED, str(tmp_path / "index"))
    assert free < 10 * MIB


@pytest.mark.slow
@ON_GLIBC
def test_fulltext_commits_do_not_accumulate_memory(tmp_path: Any) -> None:
    """An index that is never reopened would keep 2 KB of memory per commit, 1,000,000 bytes in all."""
    (kept,) = run(REMEMBERED, str(tmp_path / "index"))
    assert kept < 300_000


@pytest.mark.slow
@ON_GLIBC
def test_large_blocks_are_mapped_separately_while_requested() -> None:
    """The test uses a separate program, because the arenas of this process may have gaps for all blocks."""
    apart, together = run(MAPPED)
    assert apart > 16
    assert together == 0


@pytest.fixture
def thresholds(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Return the settings passed to malloc, in order."""
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(allocator, "_set_thresholds", lambda *given: told.append(given))
    return told


@ON_GLIBC
def test_large_blocks_stay_separate_until_last_user_ends(thresholds: list[tuple[int, int]]) -> None:
    with allocator.large_blocks_apart():
        with allocator.large_blocks_apart():
            pass
        assert thresholds == [allocator._APART]
    assert thresholds == [allocator._APART, allocator._TOGETHER]


@ON_GLIBC
def test_fulltext_commit_maps_blocks_separately_even_when_failing(
    thresholds: list[tuple[int, int]],
) -> None:
    def apply(*_: object) -> None:
        assert thresholds == [allocator._APART]
        raise OSError("full")

    index: Any = SimpleNamespace(apply=apply)
    unused: Any = None
    with pytest.raises(OSError, match="full"):
        FulltextPort(index, ChunkSizes(500), unused).apply([], [])
    assert thresholds == [allocator._APART, allocator._TOGETHER]


def test_allocator_of_another_c_library_is_left_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    allocator._glibc.cache_clear()
    monkeypatch.setattr(
        allocator.ctypes, "CDLL", lambda _: SimpleNamespace(malloc=None)
    )  # as with musl or macOS
    assert not allocator.limit_arenas()
    assert not allocator.return_memory()
    with allocator.large_blocks_apart():
        pass
    allocator._glibc.cache_clear()
