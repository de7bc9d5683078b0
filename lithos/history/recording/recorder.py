"""Recorder of versions: stores rows of changes in `history.db` and confirms them afterwards.

The versions of a batch are committed while its files are written. The batch is acknowledged after both. A row
stays pending until Lithos knows that the file was changed. The next successful commit deletes the rows of
refused changes. After a failed commit, the next commit is made before the files are written. If a version
cannot be kept, its change is then refused without effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import trio

from lithos.history.rows.store import HistoryFailed, HistoryStore, NewVersion
from lithos.kernel.actors.threads import Blocking
from lithos.kernel.log import get_logger
from lithos.notes.model.versions import OUTSIDE
from lithos.notes.writing.recording import FileResult, is_undone

log = get_logger("lithos.history")

T = TypeVar("T")

#: Seconds after which the rows of written files are confirmed, unless another commit confirms them earlier.
#: The next attempt after a store failure follows after the same time.
TIDY_AFTER: Final = 1.0
#: Maximum seconds at shutdown to confirm the last rows.
TIDY_LIMIT: Final = 5.0


class Recorder:
    """Stores versions in `history.db`. If there is no store, it does nothing."""

    def __init__(self, store: HistoryStore | None, blocking: Blocking) -> None:
        """Create the recorder. `blocking` is the only thread that writes to the store."""
        self.store = store
        self.blocking = blocking
        #: Set when a version may be missing. Wakes the catch-up task.
        self.lacks = trio.Event()
        #: Whether every note's state is kept. External edits that Lithos has not noticed yet do not count.
        self.is_caught_up = False
        #: Row positions of changes whose files are written, and of changes that were refused.
        self._confirmed: list[int] = []
        self._refused: list[int] = []

    @property
    def is_failing(self) -> bool:
        """Whether the last commit failed. If so, versions must be stored before files are changed."""
        return self.store is not None and self.store.failure is not None

    def look_again(self) -> None:
        """Wake the catch-up task because a version may be missing."""
        self.lacks.set()

    async def record(self, versions: Sequence[NewVersion], *, is_pending: bool = True) -> list[int]:
        """Commit versions and return their row positions for `settle`. Raises `HistoryFailed`."""
        store = self.store
        if store is None or not versions:
            return []
        try:
            return await self._commit(
                lambda *news: _twice(lambda: store.add(versions, *news, is_pending=is_pending))
            )
        except HistoryFailed as failure:
            self.is_caught_up = False
            self.lacks.set()
            log.error("versions not kept", versions=len(versions), reason=failure.message)
            raise

    async def keep_former(self, versions: Sequence[NewVersion]) -> None:
        """Store the states that are about to be replaced, unless these states are known to be stored.

        Raises `HistoryFailed`. In that case the caller must not replace any file.
        """
        store = self.store
        states = [
            each.before
            for each in versions
            if each.before is not None and (each.before.op == OUTSIDE or not self.is_caught_up)
        ]
        if store is not None and states:
            await self._commit(lambda *news: _twice(lambda: store.ensure(states, *news)))

    async def settle(self, places: Sequence[int], results: Sequence[FileResult]) -> None:
        """Record the results of the changes in these rows. Delete the rows of refused changes now."""
        refused = {place for place, result in zip(places, results, strict=True) if is_undone(result)}
        confirmed = [place for place in places if place not in refused]
        if refused:
            await self.settle_now(confirmed, refused)
        else:
            self._confirmed += confirmed

    async def settle_now(self, confirmed: Iterable[int], refused: Iterable[int]) -> None:
        """Confirm some rows and delete others. If the store fails, both are done by a later commit."""
        self._confirmed += confirmed
        self._refused += refused
        await self._tidy()

    async def keep_tidy(self) -> None:
        """Settle rows soon even if no other change follows, and retry a failed store.

        The method runs as a background task.
        """
        while True:
            await trio.sleep(TIDY_AFTER)
            await (self._probe() if self.is_failing else self._tidy())

    async def _probe(self) -> None:
        """Try to write again.

        `/health` then reports a recovery without waiting for the next change. The next change need not try
        whether writing works.
        """
        store = self.store
        assert store is not None
        try:
            await self._commit(store.probe)
        except HistoryFailed as failure:
            log.debug("versions cannot be kept yet", reason=failure.message)

    async def finish(self) -> None:
        """Confirm the remaining rows at shutdown. The next start then need not check these rows."""
        with trio.CancelScope(shield=True, deadline=trio.current_time() + TIDY_LIMIT):
            await self._tidy()

    async def _commit(self, write: Callable[[list[int], list[int]], T]) -> T:
        """Make a commit that also settles earlier rows.

        If the commit fails, the next commit settles the earlier rows.
        """
        confirmed, refused, was_failing = self._confirmed, self._refused, self.is_failing
        self._confirmed, self._refused = [], []
        try:
            result = await self.blocking.run(lambda: write(confirmed, refused))
        except BaseException:
            self._confirmed += confirmed
            self._refused += refused
            raise
        if was_failing:  # Pending rows count as kept, so notes with pending rows were skipped.
            self.look_again()
        return result

    async def _tidy(self) -> None:
        store = self.store
        if store is None or not (self._confirmed or self._refused):
            return
        try:
            await self._commit(lambda *news: store.add((), *news))
        except HistoryFailed as failure:
            log.error("kept versions not settled", reason=failure.message)


def _twice(write: Callable[[], T]) -> T:
    """Make a commit, and retry it once if it fails, because the files may already be written. Blocks."""
    try:
        return write()
    except HistoryFailed as failure:
        log.warning("commit of versions retried", reason=failure.message)
        return write()
