"""Tuning of malloc in glibc, which otherwise keeps the peak of freed memory of every thread.

By default each worker thread gets its own arena. Memory that a large batch frees in one arena is not reused
by other threads and not returned to the system.

A commit of the full-text index takes about 15 MB at once, in blocks of 1 to 4 MB, in its own thread, which
uses either arena, and frees them all. In an arena they leave a gap. Small, longer-lived blocks then fill the
gap, and the next commit grows the arena again: a server under constant writes grew in steps of 20 MB.
Therefore such blocks are mapped one by one during a commit, and leave nothing behind.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import trio
from attrs import define, field

from lithos.kernel.actors.threads import Threads

#: `M_ARENA_MAX`, `M_MMAP_THRESHOLD` and `M_TRIM_THRESHOLD` of malloc.h.
_ARENA_MAX: Final = -8
_MAP_FROM: Final = -3
_TRIM_FROM: Final = -1
#: One for the event loop and one for the workers: more arenas only multiply the memory that is kept.
_ARENAS: Final = 2
#: Seconds between two returns of free memory, which take a few milliseconds of a worker thread.
TRIM_EVERY: Final = 30.0

#: Bytes from which a block is mapped on its own, unless a gap has space for it, and the free space that an
#: arena keeps at its end: first while large blocks are kept apart, then at other times. Apart: the smallest
#: of the large blocks of tantivy, and no free space for one at the end. Otherwise: the buffers that a scan of
#: 400,000 vectors and a transformer take repeatedly stay in the arenas, since mapping costs a trap into the
#: kernel for each 4 kB; for a transformer that is two thirds more processor time.
_APART: Final = (1 << 20, 1 << 20)
_TOGETHER: Final = (8 << 20, 16 << 20)


@functools.cache
def _glibc() -> Any | None:
    """The C library of this process, if it is glibc."""
    library = ctypes.CDLL(None)
    wanted = ("gnu_get_libc_version", "mallopt", "malloc_trim")
    return library if all(hasattr(library, name) for name in wanted) else None


@functools.cache
def _holding() -> Any:
    """Return the C library for calls that keep the GIL, for functions that take a microsecond.

    Getting the GIL back from a busy event loop would take longer.
    """
    return ctypes.PyDLL(None)


def limit_arenas() -> bool:
    """Make all threads share a few arenas; return whether that is possible."""
    library = _glibc()
    return library is not None and bool(library.mallopt(_ARENA_MAX, _ARENAS))


def return_memory() -> bool:
    """Return free memory to the system; return whether there was any. Blocks, without holding the GIL."""
    library = _glibc()
    return library is not None and bool(library.malloc_trim(0))


async def keep_returning() -> None:
    """Return free memory periodically, until cancelled."""
    blocking = Threads()
    while _glibc() is not None:
        await trio.sleep(TRIM_EVERY)
        await blocking.run(return_memory)


@define
class _Apart:
    """Count of the threads that want large blocks apart: the setting applies to the whole process."""

    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _threads: int = field(default=0, init=False)

    def enter(self) -> None:
        with self._lock:
            self._threads += 1
            if self._threads == 1:
                _set_thresholds(*_APART)

    def leave(self) -> None:
        with self._lock:
            self._threads -= 1
            if not self._threads:
                _set_thresholds(*_TOGETHER)


_apart: Final = _Apart()


@contextmanager
def large_blocks_apart() -> Iterator[None]:
    """Map large blocks one by one while the context is open, for allocations of all threads; any thread."""
    if _glibc() is None:
        yield
        return
    _apart.enter()
    try:
        yield
    finally:
        _apart.leave()


def _set_thresholds(map_from: int, trim_from: int) -> None:
    _holding().mallopt(_MAP_FROM, map_from)
    _holding().mallopt(_TRIM_FROM, trim_from)
