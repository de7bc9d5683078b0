"""The keeper, which deletes displaced note files when no program can still be writing to them.

A displaced file is a file that lost its name because of a change by Lithos. If another program saved bytes to
such a file, or its bytes were never announced, the bytes are copied to `.lithos/displaced/` before the file
is deleted. The keeper manages the queue of these files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

import trio
from attrs import define, field, frozen

from lithos.kernel.actors.threads import Blocking
from lithos.kernel.log import get_logger
from lithos.notes.files.displaced import Displaced
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.values import LEAST_GRACE, FileBusy, Kept

log = get_logger("lithos.keeper")

#: Maximum number of files in the queue. If there are more, the oldest files are processed before their grace
#: period ends. At 100 changes a second and with the longest grace period, the queue has 6,000 files.
CAPACITY = 10_000
#: Maximum number of files that one thread job processes. This takes a few milliseconds.
SLICE = 100
#: Number of seconds before the next attempt to delete a file that another program has open. The time doubles
#: after each attempt, up to the maximum.
PAUSE, LONGEST_PAUSE = 1.0, 60.0
#: Number of seconds between two deletions of old files in `.lithos/displaced/`.
PRUNING = 24 * 3600.0


@define(eq=False)
class _Waiting:
    kept: Kept
    since: float
    due: float
    pause: float = PAUSE


@frozen
class _Outcome:
    """Result of an attempt to delete a displaced file.

    `again` requests another attempt, and `saved` lists the stored copies.

    `is_lost` means that the file is no longer at its former path.
    """

    again: bool = False
    is_lost: bool = False
    failure: str | None = None
    saved: tuple[str, ...] = ()


@define(eq=False)
class Keeper:
    """The queue of displaced files, and the background task that processes each file when it is due."""

    files: NoteFiles
    displaced: Displaced
    _blocking: Blocking
    clock: Callable[[], datetime]
    #: Function that returns the time up to which old copies are deleted.
    _settled: Callable[[], datetime]
    #: Function that is called after bytes were saved as a copy.
    _on_saved: Callable[[], None] = lambda: None
    #: Function that returns the latest accepted time. Even if the clock is set back, new copies do not get an
    #: earlier time.
    _reached: Callable[[], datetime] = lambda: datetime.min.replace(tzinfo=UTC)
    _waiting: list[_Waiting] = field(factory=list, init=False)
    _wake: trio.Event = field(factory=trio.Event, init=False)
    _pruned: float = field(default=-math.inf, init=False)

    @property
    def depth(self) -> int:
        """Number of files in the queue."""
        return len(self._waiting)

    def stamp(self) -> datetime:
        """Return the time to record for new copies. Retention uses this time."""
        return max(self.clock(), self._reached())

    def take(self, kept: Sequence[Kept]) -> None:
        """Add displaced files to the queue. Each file is due when its grace period ends."""
        now = trio.current_time()
        self._waiting += [_Waiting(each, now, now + each.grace) for each in kept]
        for early in self._waiting[: max(0, len(self._waiting) - CAPACITY)]:
            early.due = now
        if kept:
            self._wake.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Process each file when it is due, until cancelled."""
        task_status.started()
        while True:
            due = min((each.due for each in self._waiting), default=self._pruned + PRUNING)
            with trio.move_on_at(min(due, self._pruned + PRUNING)):
                await self._wake.wait()
            self._wake = trio.Event()
            now = trio.current_time()
            await self._settle([each for each in self._waiting if each.due <= now])
            if now >= self._pruned + PRUNING:
                self._pruned = now
                await self._blocking.run(partial(self.displaced.prune, self._settled()))

    async def finish(self) -> None:
        """Process the leased files at shutdown. The remaining files are processed by the next start."""
        for _ in range(2):  # Pass 1 finds files in renamed folders, and pass 2 settles these files.
            leased = [each for each in self._waiting if each.kept.is_leased]
            if leased:
                await trio.sleep_until(max(each.since for each in leased) + LEAST_GRACE)
                await self._settle(leased)

    async def _settle(self, ripe: Sequence[_Waiting]) -> None:
        for start in range(0, len(ripe), SLICE):
            some = ripe[start : start + SLICE]
            outcomes = await self._blocking.run(lambda some=some: [self._try(each.kept) for each in some])  # type: ignore[misc]
            for each, outcome in zip(some, outcomes, strict=True):
                self._note(each, outcome)
            lost = [each.kept for each, outcome in zip(some, outcomes, strict=True) if outcome.is_lost]
            if lost:  # The folders of these files were renamed, but the file names are the same.
                self.take(await self._blocking.run(lambda lost=lost: self.files.find_renamed(lost)))  # type: ignore[misc]
        gone = {id(each) for each in ripe if each.due == -math.inf}
        self._waiting = [each for each in self._waiting if id(each) not in gone]

    def _note(self, each: _Waiting, outcome: _Outcome) -> None:
        note = self.files.relative(each.kept.note)
        for path in outcome.saved:
            log.warning("external edit moved aside", path=note, kept_as=path)
            self._on_saved()
        if outcome.failure is not None:
            log.error("displaced file not settled", path=note, reason=outcome.failure)
        if not outcome.again:
            each.due = -math.inf
            return
        each.due = trio.current_time() + each.pause
        each.pause = min(2 * each.pause, LONGEST_PAUSE)

    def _try(self, kept: Kept) -> _Outcome:
        """Try to delete one displaced file, after copying its bytes if necessary. Blocks."""
        saved: list[str] = []

        def save(of: Kept, data: bytes) -> None:
            saved.append(str(self.displaced.save(self.files.relative(of.note), data, self.stamp())))

        try:
            self.files.settle(kept, save)
        except FileBusy:
            return _Outcome(again=True, saved=tuple(saved))
        except FileNotFoundError:
            return _Outcome(is_lost=True)
        except OSError as failure:
            return _Outcome(again=True, failure=str(failure), saved=tuple(saved))
        return _Outcome(saved=tuple(saved))
