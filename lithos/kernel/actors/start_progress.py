"""The progress of a server start.

The server answers requests before its first scan is complete, and reports how many notes are missing.

First the files are read (ids, titles, URLs), and writes wait until this is done. Then the text of the notes
is indexed. The start is complete when full-text search contains every note.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

import trio

from lithos.kernel.values.errors import StorageFailed

#: Progress callback. Its arguments are the progress and the total, both in seconds of waiting, and a message.
Tell: TypeAlias = Callable[[float, float, str], Awaitable[None]]

#: Seconds between two progress reports.
INTERVAL: Final = 1.0

_tell: ContextVar[Tell | None] = ContextVar("tell", default=None)


@contextmanager
def progress_told(tell: Tell) -> Iterator[None]:
    """Report progress of all calls in this block to `tell`. The callback may be slow, but must not raise."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


async def wait_telling(event: trio.Event, within: float, doing: str) -> None:
    """Wait at most `within` seconds for the event, and report progress once a second."""
    tell, begin = _tell.get(), trio.current_time()
    with trio.move_on_at(begin + within):
        while not event.is_set():
            if tell is not None:
                await tell(trio.current_time() - begin, within, doing)
            with trio.move_on_after(INTERVAL):
                await event.wait()


#: Number of files to read above which a start counts as long. Clients that can be served earlier then do not
#: wait for its end.
MANY: Final = 300
#: Maximum seconds that the front waits for the end of a start. This covers short starts.
SHORT: Final = 1.0
#: Seconds that a scan of many files waits for the front's libraries, which load twice as fast if no scan
#: runs.
FRONT_FIRST: Final = 2.0
#: Maximum seconds that a read waits for the notes that were known before the start.
READ_WAIT: Final = 30.0
#: Maximum seconds that a write waits until all files are read.
WRITE_WAIT: Final = 50.0


class StartStopped(Exception):
    """Error because the server stops before it has read its notes."""


class Opening:
    """The progress of one server start.

    The scan's thread calls the `teller` callback. The event loop calls all other methods.
    """

    def __init__(self, searchable: Callable[[], int] = lambda: 0) -> None:
        """Create the progress of a start. `searchable` returns the number of notes in full-text search."""
        self._searchable = searchable
        #: Number of note files found so far, and number of these files that are known or read.
        self.found = 0
        self.read = 0
        #: Set once readers can find the notes that were known before the start (if any).
        self.recalled = trio.Event()
        #: Set once the id, title and URL of every note are known.
        self.known = trio.Event()
        #: Set once full-text search contains every note.
        self.complete = trio.Event()
        #: Reason why the notes cannot be read now, or None. The server retries the read.
        self.failure: str | None = None
        #: Set once the scan has found many files to read.
        self.is_long = trio.Event()
        self._may_read = threading.Event()
        #: Duration of the start in seconds, once it is complete.
        self.seconds = 0.0
        self._stopped = False

    def status(self) -> Mapping[str, int] | None:
        """Return the numbers of searchable notes and of all notes, or None once all are searchable."""
        return None if self.complete.is_set() else self.progress()

    def progress(self) -> Mapping[str, int]:
        """Return the numbers of searchable notes and of all notes."""
        return {"done": min(self._searchable(), self.found), "total": self.found}

    def told(self) -> str:
        """Return a sentence about how many notes can be searched."""
        done, total = self.progress().values()
        if not total:
            return "Lithos is still reading the notes: none can be searched yet. Ask again in a moment."
        return (
            f"Lithos is still indexing the notes: {done:,} of {total:,} can be searched so far, "
            "so this answer may be incomplete. Ask again in a moment. Meanwhile a note can be "
            "read by its path."
        )

    def teller(self) -> Callable[[int, int], None]:
        """Return the progress callback for a scan.

        The callback gets the number of known or read files, and the number of all files. It may block until
        `let_read`.

        The callback raises `StartStopped` after `stop`.
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
        """Show `known` notes from before the start in lists and searches, until the notes are read again."""
        self.found = max(self.found, known)
        self.recalled.set()

    def let_read(self) -> None:
        """Let the scan read many files, because no client waits for a library any more."""
        self._may_read.set()

    def stop(self) -> None:
        """Stop a running scan."""
        self._stopped = True
        self._may_read.set()

    async def worth_waiting(self) -> None:
        """Wait until the start is complete, or until it is known that the start takes long."""
        with trio.move_on_after(SHORT):
            async with trio.open_nursery() as nursery:
                for event in (self.complete, self.is_long):
                    nursery.start_soon(_cancel_after, event, nursery.cancel_scope)

    async def wait_recalled(self) -> None:
        """Wait until the notes from before the start are restored, up to a time limit.

        Return at once if the notes folder cannot be read.
        """
        if not self.recalled.is_set() and self.failure is None:
            await wait_telling(self.recalled, READ_WAIT, "restoring the known notes")

    def will_tell(self, is_recalled: bool) -> bool:
        """Return whether the scan will report the version of a note whose file changed."""
        return not self.known.is_set() and (is_recalled or not self.recalled.is_set())

    async def wait_known(self) -> None:
        """Wait until every note is known. Raises `StorageFailed` if that takes too long."""
        if self.known.is_set():
            return
        await wait_telling(self.known, WRITE_WAIT, "reading the notes")
        if not self.known.is_set():
            why = f" ({self.failure})" if self.failure else ""
            raise StorageFailed(
                f"The notes are still being read, {self.read} of {self.found} so far{why}. Until "
                "all are read, Lithos writes nothing and knows no ids. Nothing was changed. "
                "Retry in a minute."
            )


async def _cancel_after(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
