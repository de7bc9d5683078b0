"""Lingering: an actor waits for more messages unless a caller is waiting for the actor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from lithos.kernel.actors.mailboxes import Mailbox, run_batches, supervise

pytestmark = pytest.mark.autojump

LINGER = 0.1
URGENT = "urgent"


class Gatherer:
    """Recorder of batches and their flush times."""

    def __init__(self) -> None:
        self.box: Mailbox[Any, Any] = Mailbox("x", 64)
        self.batches: list[list[Any]] = []
        self.times: list[float] = []
        self.served = 0

    async def _flush(self, messages: Sequence[Any]) -> Sequence[Any]:
        self.batches.append(list(messages))
        self.times.append(trio.current_time())
        await trio.sleep(0.01)
        return messages

    def _note_served(self) -> None:
        self.served += 1

    async def _start(self, inbox: Any, *, task_status: Any) -> None:
        task_status.started()
        await run_batches(
            inbox,
            self._flush,
            size=8,
            linger=LINGER,
            is_urgent=lambda message: message == URGENT,
            on_served=self._note_served,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(supervise, self.box, self._start))
            yield
            self.box.close()


async def test_messages_that_arrive_during_the_wait_form_one_batch() -> None:
    actor, began = Gatherer(), trio.current_time()
    async with actor.running():
        for number in range(4):
            await actor.box.post(number)
            await trio.sleep(LINGER / 8)
        await trio.sleep(1)
        assert actor.batches == [[0, 1, 2, 3]]
        assert actor.times == [pytest.approx(began + LINGER)]
        assert actor.served == 1


@pytest.mark.parametrize("urgent", [0, 1, 3])
async def test_urgent_message_ends_the_wait(urgent: int) -> None:
    actor, began = Gatherer(), trio.current_time()
    async with actor.running():
        for number in range(urgent):
            await actor.box.post(number)
        await wait_all_tasks_blocked()
        await actor.box.ask(URGENT)
        assert actor.batches == [[*range(urgent), URGENT]]
        assert actor.times == [began]


async def test_full_batch_is_processed_without_waiting() -> None:
    actor, began = Gatherer(), trio.current_time()
    for number in range(20):
        await actor.box.post(number)
    async with actor.running():
        await trio.sleep(1)
    assert [len(batch) for batch in actor.batches] == [8, 8, 4]
    assert actor.times[:2] == [pytest.approx(began), pytest.approx(began + 0.01)]


async def test_waiting_batch_is_processed_immediately_at_shutdown() -> None:
    actor, began = Gatherer(), trio.current_time()
    async with actor.running():
        envelope = await actor.box.post(1)
        await wait_all_tasks_blocked()
    assert await envelope.reply() == 1
    assert actor.times == [began]
