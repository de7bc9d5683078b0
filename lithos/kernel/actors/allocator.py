"""Tuning of malloc where the C library is glibc, which else retains the peak of freed memory of every thread.

Each worker thread otherwise gets an arena of its own, and what a large batch freed in one of them is neither
used by others nor given back to the system.

A commit of the full-text index takes some 15 MB at once, in blocks of 1 to 4 MB, in a thread of its own that
is in either arena, and frees them all. In an arena they leave a gap. Small blocks that live longer settle in
it, and then the arena grows by as much again: a server that is always written to grew in steps of 20 MB.
So while it commits, such blocks are mapped one by one, and leave nothing behind.
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
#: One for the event loop and one for the workers: more only multiply what is kept.
_ARENAS: Final = 2
#: Seconds between two returns of free memory, which take a few milliseconds of a worker thread.
TRIM_EVERY: Final = 30.0

#: Bytes from which on a block is mapped by itself, unless a gap has room for it, and what an arena keeps free
#: at its end: while blocks are kept apart, and else. Apart: tantivy's smallest large ones, and no room for
#: one at the end. Else: what a scan of 400,000 vectors and a transformer take again and again stays in the
#: arenas, since mapping costs a page fault each 4 kB, for a transformer two thirds more processor time.
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
    """The same, called without giving up the GIL: for what takes a microsecond.

    Getting it back from a busy event loop would take longer.
    """
    return ctypes.PyDLL(None)


def limit_arenas() -> bool:
    """Have all threads share a few arenas; True where that is possible."""
    library = _glibc()
    return library is not None and bool(library.mallopt(_ARENA_MAX, _ARENAS))


def return_memory() -> bool:
    """Give free memory back to the system; True when there was some. Blocks, without holding the GIL."""
    library = _glibc()
    return library is not None and bool(library.malloc_trim(0))


async def keep_returning() -> None:
    """Give free memory back now and then, until cancelled."""
    blocking = Threads()
    while _glibc() is not None:
        await trio.sleep(TRIM_EVERY)
        await blocking.run(return_memory)


@define
class _Apart:
    """How many threads want large blocks apart now: the setting is that of the whole process."""

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
    """Have large blocks that are taken in the block mapped one by one, by whatever thread; any thread."""
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
