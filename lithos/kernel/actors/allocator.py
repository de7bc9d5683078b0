"""Tuning of glibc's malloc, which otherwise retains the peak of freed memory for every thread.

By default, each worker thread gets its own arena. If a large batch frees memory in one arena, other threads
cannot reuse it, and it is not returned to the system.

A full-text index commit allocates about 15 MB in blocks of 1 to 4 MB and then frees all of them. The commit
runs in its own thread, which may use either arena. The freed blocks leave a gap in the arena. Small,
longer-lived blocks then fill the gap, so the next commit grows the arena again. Under constant writes, a
server grew in steps of 20 MB. During a commit, large blocks are therefore mapped one by one, and leave no gap
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
#: Number of arenas: one for the event loop and one for the workers. More arenas would only retain more
#: memory.
_ARENAS: Final = 2
#: Seconds between two calls that return free memory to the system. Each call blocks a worker thread for a few
#: milliseconds.
TRIM_EVERY: Final = 30.0

#: Values while large blocks are mapped one by one, and values for all other times. The first number is the
#: minimum size in bytes of a block that is mapped on its own if no gap has space for it. The second number is
#: the free space that an arena retains at its end. The first pair uses tantivy's smallest large block as the
#: minimum size, and an arena retains no free space for such a block. With the second pair, the buffers that a
#: scan of 400,000 vectors and a transformer allocate repeatedly stay in the arenas, because mapping costs one
#: trap into the kernel per 4 kB. For a transformer, mapping would take two thirds more processor time.
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
    """Return the C library for calls that do not release the GIL.

    Use it only for functions that take a microsecond.

    Releasing the GIL and getting it back from a busy event loop would take longer than the call.
    """
    return ctypes.PyDLL(None)


def limit_arenas() -> bool:
    """Limit all threads to a few shared arenas. Return whether malloc supports this limit."""
    library = _glibc()
    return library is not None and bool(library.mallopt(_ARENA_MAX, _ARENAS))


def return_memory() -> bool:
    """Return free memory to the system without holding the GIL.

    Return whether there was any free memory. Blocks.
    """
    library = _glibc()
    return library is not None and bool(library.malloc_trim(0))


async def keep_returning() -> None:
    """Periodically return free memory to the system, until cancelled."""
    blocking = Threads()
    while _glibc() is not None:
        await trio.sleep(TRIM_EVERY)
        await blocking.run(return_memory)


@define
class _Apart:
    """Counter of the threads that want large blocks to be mapped one by one.

    The setting applies to the whole process.
    """

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
    """Map the large blocks of all threads one by one while the block runs.

    Any thread may call this function.
    """
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
