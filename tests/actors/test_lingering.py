"""An actor that waits for more only while several are asking."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import trio

from lithos.actors.kit import Mailbox, run_batches, supervise

pytestmark = pytest.mark.autojump

LINGER = 0.02
ROUND_TRIP = 0.005


async def ask_in_turn(box: Mailbox[Any, Any], times: int) -> float:
    began = trio.current_time()
    for number in range(times):
        await box.ask(number)
        await trio.sleep(ROUND_TRIP)
    return trio.current_time() - began


async def run(askers: int, times: int) -> tuple[list[int], float]:
    sizes: list[int] = []
    box: Mailbox[Any, Any] = Mailbox("x", 64)

    async def flush(messages: Sequence[Any]) -> Sequence[Any]:
        sizes.append(len(messages))
        await trio.sleep(0.01)
        return messages

    async def start(inbox: Any, *, task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await run_batches(inbox, flush, size=64, linger=LINGER, linger_alone=False)

    async with trio.open_nursery() as nursery:
        await nursery.start(partial(supervise, box, start))
        began = trio.current_time()
        async with trio.open_nursery() as asking:
            for _ in range(askers):
                asking.start_soon(ask_in_turn, box, times)
        seconds = trio.current_time() - began
        box.close()
    return sizes, seconds


async def test_a_lone_sender_never_waits_for_others() -> None:
    sizes, seconds = await run(askers=1, times=10)
    assert sizes == [1] * 10
    assert seconds == pytest.approx(10 * (0.01 + ROUND_TRIP))


async def test_many_senders_gather_in_one_batch() -> None:
    sizes, _ = await run(askers=16, times=10)
    assert max(sizes) == 16
    assert sum(sizes) == 160
    assert len(sizes) <= 12
