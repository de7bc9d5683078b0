"""Histories of real servers, which must be linearizable.

Servers run in this process, or in processes that are killed.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
import trio

from lithos.kernel.actors.mailboxes import ActorDown, honest_outcome
from lithos.kernel.values.errors import StorageFailed
from tests.e2e.clients import Gone
from tests.linearizability.campaign import Checked, run_campaigns
from tests.linearizability.checker import UNKNOWN
from tests.linearizability.recording import History
from tests.linearizability.workload import Workload, read_change
from tests.repeats import repeats
from tests.servers import Clock, serving

ROUNDS, CLIENTS, CALLS = 4, 5, 20


@pytest.mark.slow
async def test_histories_of_competing_clients_are_linearizable(tmp_path: Path) -> None:
    """behaviours 10 and 88: covers notes, expiring claims, completions, and a person's atomic saves."""
    clock = Clock()
    workload = Workload(Random(1))
    async with serving(tmp_path, clock=clock, settled=False) as lithos:
        await workload.prepare(lithos.call)
        for number in range(ROUNDS):
            async with trio.open_nursery() as nursery:
                for client in range(CLIENTS):
                    nursery.start_soon(workload.work, f"c{client}", lithos.call, CALLS)
            assert workload.save(lithos.knowledge, in_place=False) == []
            if number % 2:
                workload.expire(lambda: clock.advance(hours=9))
    checked = Checked.of(workload, kills=0)
    print(checked)  # noqa: T201 - for `pytest -s`
    assert not checked.problems, checked.problems[0]
    assert checked.histories == 6
    assert checked.operations > ROUNDS * CLIENTS * CALLS


async def test_late_answer_counts_as_lost_but_a_crash_does_not() -> None:
    history, failure = History(), Exception()

    async def call() -> dict[str, object]:
        try:
            with honest_outcome("Look again."):
                raise failure
        except StorageFailed as refusal:
            return {"status": "error", "code": refusal.code, "message": refusal.message}

    failure = trio.TooSlowError()
    with pytest.raises(Gone):
        await history.add("task t", "c", "claim", None, call, read_change)
    assert [operation.result for operation in history.operations] == [UNKNOWN]
    assert history.lost == 1
    failure = ActorDown("KeyError()")
    with pytest.raises(AssertionError):
        await history.add("task t", "c", "claim", None, call, read_change)


@pytest.mark.slow
@pytest.mark.disk
@pytest.mark.takes(19)
@pytest.mark.deadline(240)
async def test_histories_are_linearizable_despite_kills_and_pauses(tmp_path: Path) -> None:
    """behaviours 10, 88 and 176: covers kill -9, pauses, delayed effects of calls, and a person's saves."""
    checked = await run_campaigns(tmp_path, 1, lambda done: done.kills >= repeats("KILLS", 6))
    print(checked)  # noqa: T201 - for `pytest -s`
    assert not checked.problems, checked.problems[0]
    assert checked.operations > 500
    assert checked.lost > 5
    assert checked.saves > 5
