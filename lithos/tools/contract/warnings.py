"""Warnings about notes on rows and answers that show them (docs/spec/context.md §2)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, TypeAlias

import trio

from lithos.catalogue.lineage import Lineage
from lithos.core.notes.trust import NoteWarning
from lithos.tools.contract.rows import row_of

#: Seconds of looking after which others may run.
TURN: Final = 0.002

#: What an asker is told of a warning, None for nothing.
Veil: TypeAlias = Callable[[NoteWarning], NoteWarning | None]


class Warner:
    """Adds the key `warnings` where there is something to say, as the notes are now."""

    def __init__(self, lineage: Lineage, clock: Callable[[], datetime]) -> None:
        self._lineage = lineage
        self._clock = clock

    async def warn(self, shown: Iterable[tuple[str, dict[str, Any]]], veil: Veil | None = None) -> None:
        """Add the warnings of each note to its row, before any that the row has; long lists take turns.

        `shown` are ids of notes with their rows. `veil` hides what the asker may not know of other notes.
        """
        await self._lineage.settle()
        now, began = self._clock(), time.perf_counter()
        for note_id, row in shown:
            found = self._lineage.warnings(note_id, now)
            if found:
                told = found if veil is None else [each for one in found if (each := veil(one)) is not None]
                if told:
                    row["warnings"] = [*map(row_of, told), *row.get("warnings", ())]
            if time.perf_counter() - began > TURN:
                await trio.lowlevel.checkpoint()
                began = time.perf_counter()
