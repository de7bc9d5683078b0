"""Notes that somebody should look at: quarantined, suspect, contradicted, superseded or expired ones.

A look goes through all notes in short slices on the event loop, with pauses, and only when somebody asked;
until it is over the result of the last one is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from time import perf_counter
from typing import Final

import trio
from attrs import frozen

from lithos.catalogue.catalogue import Catalogue
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


@frozen
class Concern:
    """A note (`id`, `title`) and the first warning of one kind about it."""

    id: str
    title: str
    warning: NoteWarning
    expires_at: datetime | None


@frozen
class ConcernReport:
    """How many notes have warnings of each kind, and the first of them."""

    at: datetime
    counts: Mapping[WarningKind, int]
    named: Mapping[WarningKind, tuple[Concern, ...]]


class Concerns:
    """Looks through the notes while `run` runs."""

    def __init__(
        self,
        catalogue: Catalogue,
        warnings_of: WarningsOf,
        clock: Callable[[], datetime],
        named: int = NAMED,
        settle: Settle = trio.lowlevel.checkpoint,
    ) -> None:
        """`settle` is awaited before each look: it gets `warnings_of` ready."""
        self._catalogue = catalogue
        self._warnings_of = warnings_of
        self._clock = clock
        self._named = named
        self._settle = settle
        self._report: ConcernReport | None = None
        self._good_until = 0.0
        self._wanted = trio.Event()
        self._done = trio.Event()

    async def report(self) -> ConcernReport | None:
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

    async def _look(self) -> ConcernReport:
        await self._settle()
        now = self._clock()
        counts = Counter[WarningKind]()
        named: dict[WarningKind, list[Concern]] = {}
        until = perf_counter() + SLICE
        for note_id in [entry.note.id for entry in self._catalogue]:
            kinds = set[WarningKind]()
            for warning in self._warnings_of(note_id, now):
                if warning.kind in kinds:
                    continue
                kinds.add(warning.kind)
                counts[warning.kind] += 1
                entry, group = self._catalogue.get(note_id), named.setdefault(warning.kind, [])
                if entry is not None and len(group) < self._named:
                    group.append(Concern(note_id, entry.note.title, warning, entry.note.expires_at))
            if perf_counter() >= until:
                await trio.sleep(PAUSE)
                until = perf_counter() + SLICE
        return ConcernReport(now, dict(counts), {kind: tuple(group) for kind, group in named.items()})
