"""Warnings about notes on rows and answers that show them (docs/spec/context.md §2)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import trio

from lithos.core.notes.model import NoteWarning
from lithos.tools.contract.declaring import Services
from lithos.tools.contract.rows import warning_row

#: Seconds of looking after which others may run.
TURN: Final = 0.002

#: What an asker is told of a warning, None for nothing.
Veil: TypeAlias = Callable[[NoteWarning], NoteWarning | None]


async def warn(
    using: Services, shown: Iterable[tuple[str, dict[str, Any]]], veil: Veil | None = None
) -> None:
    """Add the warnings of each note to its row, before any that the row has; long lists take turns.

    `shown` are ids of notes with their rows; the key `warnings` comes where there is something to say, as the
    notes are now. `veil` hides what the asker may not know of other notes.
    """
    await using.lineage.settle()
    now, began = using.clock(), time.perf_counter()
    for note_id, row in shown:
        found = using.lineage.warnings(note_id, now)
        if found:
            told = found if veil is None else [each for one in found if (each := veil(one)) is not None]
            if told:
                row["warnings"] = [*map(warning_row, told), *row.get("warnings", ())]
        if time.perf_counter() - began > TURN:
            await trio.lowlevel.checkpoint()
            began = time.perf_counter()
