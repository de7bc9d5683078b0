"""The history of a first start leaves the processor to the embedding of the notes, but not for ever."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from lithos.app import EMBEDDING, _catch_up


class Began:
    def __init__(self) -> None:
        self.at: float | None = None

    async def run(self) -> None:
        self.at = trio.current_time()


def actors_of(began: Began) -> Any:
    return SimpleNamespace(
        opening=SimpleNamespace(complete=trio.Event()),
        semantic=SimpleNamespace(settled=trio.Event()),
        catching_up=began,
    )


@pytest.mark.autojump
async def test_it_begins_when_every_note_is_embedded() -> None:
    began = Began()
    actors = actors_of(began)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_catch_up, actors)
        actors.opening.complete.set()
        await wait_all_tasks_blocked()
        assert began.at is None
        actors.semantic.settled.set()
        await wait_all_tasks_blocked()
        assert began.at is not None


@pytest.mark.autojump
async def test_an_embedding_without_end_does_not_hold_it_up() -> None:
    began = Began()
    actors = actors_of(began)
    actors.opening.complete.set()
    start = trio.current_time()
    await _catch_up(actors)
    assert began.at == pytest.approx(start + EMBEDDING)
