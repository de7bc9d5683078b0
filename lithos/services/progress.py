"""Progress notifications of long calls; the front sets the callback when the client asked for progress."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

import trio

#: The progress callback: progress and total (both in seconds of waiting), and a message.
Tell: TypeAlias = Callable[[float, float, str], Awaitable[None]]

#: Seconds between two reports.
INTERVAL: Final = 1.0

_tell: ContextVar[Tell | None] = ContextVar("tell", default=None)


@contextmanager
def progress_told(tell: Tell) -> Iterator[None]:
    """Calls inside the block report progress to `tell`, which may be slow but must not raise."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


async def wait_telling(event: trio.Event, within: float, doing: str) -> None:
    """Wait for the event, at most `within` seconds, and report progress once a second meanwhile."""
    tell, begin = _tell.get(), trio.current_time()
    with trio.move_on_at(begin + within):
        while not event.is_set():
            if tell is not None:
                await tell(trio.current_time() - begin, within, doing)
            with trio.move_on_after(INTERVAL):
                await event.wait()
