"""Progress of a start: until its first scan is complete the server answers, and reports what is missing.

First the files are read (ids, titles, URLs); writes wait for this. Then their words are indexed. The start is
complete when full-text search has every note.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

import trio

from lithos.kernel.values.errors import StorageFailed

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
    """Wait for the event, at most `within` seconds, and report progress once a second while waiting."""
    tell, begin = _tell.get(), trio.current_time()
    with trio.move_on_at(begin + within):
        while not event.is_set():
            if tell is not None:
                await tell(trio.current_time() - begin, within, doing)
            with trio.move_on_after(INTERVAL):
                await event.wait()


#: Number of files to read from which clients that can be served earlier do not wait for the start.
MANY: Final = 300
#: Seconds that the front waits for a start that turns out to be short.
SHORT: Final = 1.0
#: Seconds for which a scan of many files waits for the libraries of the front, which load twice as fast
#: alone.
FRONT_FIRST: Final = 2.0
#: Seconds that a read waits for the notes that were known before the start.
READ_WAIT: Final = 30.0
#: Seconds that a write waits for the first pass.
WRITE_WAIT: Final = 50.0


class StartStopped(Exception):
    """The server stops before its notes have been read."""


class Opening:
    """Progress of a start. The thread that reads the files calls `tell`; the event loop calls all other
    methods.
    """

    def __init__(self, searchable: Callable[[], int] = lambda: 0) -> None:
        """`searchable` counts the notes that full-text search has."""
        self._searchable = searchable
        #: Files of notes; then, how many of them are known or read.
        self.found = 0
        self.read = 0
        #: Set once readers find the notes that were known before the start, if any were.
        self.recalled = trio.Event()
        #: Set once every note is known: id, title, URL.
        self.known = trio.Event()
        #: Set once full text has every note.
        self.complete = trio.Event()
        #: Reason why the notes cannot be read now; the read is retried.
        self.failure: str | None = None
        #: Set once there are many files to read.
        self.is_long = trio.Event()
        self._may_read = threading.Event()
        #: Duration of the start, once it is complete.
        self.seconds = 0.0
        self._stopped = False

    def status(self) -> Mapping[str, int] | None:
        """Return how many notes of how many can be searched; None when all can."""
        return None if self.complete.is_set() else self.progress()

    def progress(self) -> Mapping[str, int]:
        """Return how many notes of how many can be searched."""
        return {"done": min(self._searchable(), self.found), "total": self.found}

    def told(self) -> str:
        """Return how many notes can be searched, as a sentence."""
        done, total = self.progress().values()
        if not total:
            return "Lithos is still reading the notes: none can be searched yet. Ask again in a moment."
        return (
            f"Lithos is still indexing the notes: {done:,} of {total:,} can be searched so far, others may "
            "be missing from this answer. Ask again in a moment; a note can be read by its path meanwhile."
        )

    def teller(self) -> Callable[[int, int], None]:
        """Return the progress callback of a scan: files known or read, of all. It may wait for `let_read`.

        It raises `StartStopped` after `stop`.
        """
        token = trio.lowlevel.current_trio_token()
        is_first = True

        def tell(done: int, total: int) -> None:
            nonlocal is_first
            if self._stopped:
                raise StartStopped
            self.read, self.found = done, total
            if is_first and total - done > MANY:
                token.run_sync_soon(self.is_long.set)
                self._may_read.wait(FRONT_FIRST)
            is_first = False

        return tell

    def show(self, known: int) -> None:
        """Make `known` notes from before the start available to lists and searches, although none was
        read again.
        """
        self.found = max(self.found, known)
        self.recalled.set()

    def let_read(self) -> None:
        """Let the scan read many files now: no client waits for a library any more."""
        self._may_read.set()

    def stop(self) -> None:
        """End a running scan."""
        self._stopped = True
        self._may_read.set()

    async def worth_waiting(self) -> None:
        """Wait until the start is complete, or has turned out to take long."""
        with trio.move_on_after(SHORT):
            async with trio.open_nursery() as nursery:
                for event in (self.complete, self.is_long):
                    nursery.start_soon(_cancel_after, event, nursery.cancel_scope)

    async def wait_recalled(self) -> None:
        """Wait until the notes that were known before the start are restored, or until that takes long.

        Return at once if the folder of the notes cannot be read.
        """
        if not self.recalled.is_set() and self.failure is None:
            await wait_telling(self.recalled, READ_WAIT, "recalling the notes")

    def will_tell(self, is_recalled: bool) -> bool:
        """Return whether the scan will report the version of a note whose file has changed bytes."""
        return not self.known.is_set() and (is_recalled or not self.recalled.is_set())

    async def wait_known(self) -> None:
        """Wait until every note is known; raises `StorageFailed` when that takes too long."""
        if self.known.is_set():
            return
        await wait_telling(self.known, WRITE_WAIT, "reading the notes")
        if not self.known.is_set():
            why = f" ({self.failure})" if self.failure else ""
            raise StorageFailed(
                f"The notes are still being read, {self.read} of {self.found} so far{why}; until then "
                "nothing is written and no id is known. Nothing was changed; retry in a minute."
            )


async def _cancel_after(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
