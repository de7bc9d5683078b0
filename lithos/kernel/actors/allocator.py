"""Tuning of glibc's malloc, which otherwise keeps the peak of freed memory for every thread.

By default each worker thread gets its own arena. Memory that a large batch frees in one arena is not reused
by other threads and not returned to the system.

A commit of the full-text index allocates about 15 MB in blocks of 1 to 4 MB and then frees all of them. The
commit runs in its own thread, which may use either arena. The freed blocks leave a gap in the arena, which
small, longer-lived blocks then fill, so the next commit grows the arena again. Under constant writes, a
server grew in steps of 20 MB. Therefore large blocks are mapped one by one during a commit, and leave no gap
when they are freed.
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

#: Parameter numbers of `M_ARENA_MAX`, `M_MMAP_THRESHOLD` and `M_TRIM_THRESHOLD` in malloc.h.
_ARENA_MAX: Final = -8
_MAP_FROM: Final = -3
_TRIM_FROM: Final = -1
#: Number of arenas: one for the event loop and one for the workers. More arenas only keep more memory.
_ARENAS: Final = 2
#: Seconds between two returns of free memory to the system. Each return blocks a worker thread for a few
#: milliseconds.
TRIM_EVERY: Final = 30.0

#: Values for the time in which large blocks are kept apart, and for all other times. The first number is the
#: block size in bytes from which a block is mapped on its own, unless a gap has space for it. The second
#: number is the free space that an arena keeps at its end. While large blocks are kept apart, the threshold
#: is tantivy's smallest large block, and an arena keeps no free space for such a block. At other times, the
#: buffers that a scan of 400,000 vectors and a transformer allocate repeatedly stay in the arenas, because
#: mapping costs one trap into the kernel per 4 kB. For a transformer, mapping would take two thirds more
#: processor time.
_APART: Final = (1 << 20, 1 << 20)
_TOGETHER: Final = (8 << 20, 16 << 20)


@functools.cache
def _glibc() -> Any | None:
    """Return the C library of this process if it is glibc, else None."""
    library = ctypes.CDLL(None)
    wanted = ("gnu_get_libc_version", "mallopt", "malloc_trim")
    return library if all(hasattr(library, name) for name in wanted) else None


@functools.cache
def _holding() -> Any:
    """Return the C library for calls that keep the GIL. Use it only for functions that take a microsecond.

    Releasing the GIL and taking it back from a busy event loop would take longer than such a call.
    """
    return ctypes.PyDLL(None)


def limit_arenas() -> bool:
    """Limit all threads to a few shared arenas. Return whether malloc supports the limit."""
    library = _glibc()
    return library is not None and bool(library.mallopt(_ARENA_MAX, _ARENAS))


def return_memory() -> bool:
    """Return free memory to the system, without holding the GIL. Return whether any was free. Blocks."""
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
    """Map large blocks of all threads one by one while the context is open. Any thread may call this."""
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
