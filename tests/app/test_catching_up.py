"""History scan of a first start. The scan waits a limited time until the notes are embedded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from lithos.app.server import EMBEDDING, _catch_up
from lithos.history.recording.backfill import CatchingUp
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.parts import Parts
from lithos.search.indexing.semantic import SemanticBackend


class Began:
    def __init__(self) -> None:
        self.at: float | None = None

    async def run(self) -> None:
        self.at = trio.current_time()


def parts_of(began: Began) -> Any:
    opening, semantic = SimpleNamespace(complete=trio.Event()), SimpleNamespace(settled=trio.Event())
    return Parts(given={Opening: opening, SemanticBackend: semantic, CatchingUp: began})


@pytest.mark.autojump
async def test_history_scan_begins_when_every_note_is_embedded() -> None:
    began = Began()
    parts = parts_of(began)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_catch_up, parts)
        parts.get(Opening).complete.set()
        await wait_all_tasks_blocked()
        assert began.at is None
        parts.get(SemanticBackend).settled.set()
        await wait_all_tasks_blocked()
        assert began.at is not None


@pytest.mark.autojump
async def test_history_scan_begins_at_a_time_limit_during_embedding() -> None:
    began = Began()
    parts = parts_of(began)
    parts.get(Opening).complete.set()
    start = trio.current_time()
    await _catch_up(parts)
    assert began.at == pytest.approx(start + EMBEDDING)
