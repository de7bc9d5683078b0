"""Tuning of malloc where the C library is glibc, which else retains the peak of freed memory of every thread.

Each worker thread otherwise gets an arena of its own, and what a large batch freed in one of them is neither
used by others nor given back to the system.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Final

import trio

from lithos.actors.blocking import Threads

#: `M_ARENA_MAX` of malloc.h.
_ARENA_MAX: Final = -8
#: One for the event loop and one for the workers: more only multiply what is kept.
_ARENAS: Final = 2
#: Seconds between two returns of free memory, which take a few milliseconds of a worker thread.
TRIM_EVERY: Final = 30.0


@functools.cache
def _glibc() -> Any | None:
    """The C library of this process, if it is glibc."""
    library = ctypes.CDLL(None)
    wanted = ("gnu_get_libc_version", "mallopt", "malloc_trim")
    return library if all(hasattr(library, name) for name in wanted) else None


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
