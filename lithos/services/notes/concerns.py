"""Notes that somebody should look at: quarantined, suspect, contradicted, superseded or expired ones.

A look goes through all notes in short slices on the event loop, with pauses, and only when somebody asked;
until it is over the result of the last one is told.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from time import perf_counter
from typing import Final, get_args

import trio
from attrs import define, field

from lithos.catalogue.catalogue import Catalogue, Entry
from lithos.core.care import CareReport, CareRow, Found, Named
from lithos.core.notes.model import NoteWarning, WarningKind

#: Seconds for which a look is good, and how many times as long as it took.
AGE, AGE_TIMES = 10.0, 20.0
#: Seconds of one slice on the event loop, and of the pause that follows.
SLICE, PAUSE = 0.001, 0.004
#: Seconds that the first who ask wait.
PATIENCE: Final = 0.05
#: Notes of each kind that are named.
NAMED: Final = 10

#: The warnings about one note.
WarningsOf = Callable[[str, datetime], tuple[NoteWarning, ...]]
Settle = Callable[[], Awaitable[None]]


async def in_slices(catalogue: Catalogue, ids: Sequence[str], seconds: float = SLICE) -> AsyncIterator[Entry]:
    """The notes that are still there when their turn comes, in slices of `seconds` with pauses between."""
    until = perf_counter() + seconds
    for note_id in ids:
        entry = catalogue.get(note_id)
        if entry is not None:
            yield entry
        if perf_counter() >= until:
            await trio.sleep(PAUSE)
            until = perf_counter() + seconds


def named_of(entry: Entry) -> Named:
    """A note as reports name it."""
    return Named(entry.note.id, entry.note.title, entry.path)


@define(eq=False)
class Concerns:
    """Looks through the notes while `run` runs."""

    _catalogue: Catalogue
    _warnings_of: WarningsOf
    _clock: Callable[[], datetime]
    _named: int = NAMED
    #: Awaited before each look: it gets `warnings_of` ready.
    _settle: Settle = trio.lowlevel.checkpoint
    _report: CareReport | None = field(default=None, init=False)
    _good_until: float = field(default=0.0, init=False)
    _wanted: trio.Event = field(factory=trio.Event, init=False)
    _done: trio.Event = field(factory=trio.Event, init=False)

    async def report(self) -> CareReport | None:
        """What the last look found; None when there was none yet. Has the next one begin if it is due."""
        if trio.current_time() >= self._good_until:
            self._wanted.set()
        if self._report is None:
            with trio.move_on_after(PATIENCE):
                await self._done.wait()
        return self._report

    async def run(self) -> None:
        """Look whenever somebody asked and the last look is no good any more; until cancelled."""
        while True:
            await self._wanted.wait()
            began = trio.current_time()
            self._report = await self._look()
            taken = trio.current_time() - began
            self._good_until = trio.current_time() + max(AGE, taken * AGE_TIMES)
            self._wanted = trio.Event()
            self._done.set()

    async def _look(self) -> CareReport:
        """How many notes have warnings of each kind, and the first of them, each with its first warning."""
        await self._settle()
        now, found = self._clock(), Found(self._named)
        ids = [entry.note.id for entry in self._catalogue]
        async for entry in in_slices(self._catalogue, ids):
            warnings = {each.kind: each for each in reversed(self._warnings_of(entry.note.id, now))}
            for kind, warning in warnings.items():
                about = Named(warning.id, warning.title, "")
                found.add(kind, CareRow(notes=(named_of(entry), about), why=warning.reason))
        return found.report(now, len(ids), (), get_args(WarningKind))
