"""Admission control on a mock clock. It decides which calls may run at the same time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import assert_no_checkpoints, wait_all_tasks_blocked

from lithos.app.capabilities import all_tools
from lithos.search.service.search import Search
from lithos.server.tools.admission import LENT, SERVED, Admission
from tests.servers import serving

#: Duration of one test search in seconds. It is shorter than the time for which a slot is lent.
SEARCH = 0.004
#: Seconds during which changes follow one another without a break.
LASTING = 3.0


async def read(
    admission: Admission, begun: list[tuple[int, float]], number: int, seconds: float = SEARCH
) -> None:
    async with admission.reading():
        begun.append((number, trio.current_time()))
        await trio.sleep(seconds)


async def change(admission: Admission, seconds: float) -> None:
    with admission.changing():
        await trio.sleep(seconds)


async def in_order(nursery: trio.Nursery, *calls: Callable[[], Awaitable[None]]) -> None:
    for call in calls:
        nursery.start_soon(call)
        await wait_all_tasks_blocked()


@pytest.mark.autojump
async def test_all_reads_begin_at_once_when_no_change_runs() -> None:
    admission, begun = Admission(), list[tuple[int, float]]()
    now = trio.current_time()
    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(read, admission, begun, number)
    assert {at for _, at in begun} == {now}
    with assert_no_checkpoints():
        async with admission.reading():
            assert admission.waiting == 0


@pytest.mark.autojump
async def test_reads_begin_one_by_one_during_a_change() -> None:
    admission, begun = Admission(), list[tuple[int, float]]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(change, admission, 0.1)
        await wait_all_tasks_blocked()
        now = trio.current_time()
        await in_order(nursery, *(lambda n=n: read(admission, begun, n) for n in range(5)))
        assert admission.waiting == 4
    assert [number for number, _ in begun] == list(range(5))
    assert [at - now for _, at in begun] == pytest.approx([SEARCH * n for n in range(5)])


@pytest.mark.autojump
async def test_all_reads_begin_when_the_last_change_ends() -> None:
    admission, begun = Admission(), list[tuple[int, float]]()
    now = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(change, admission, SEARCH / 4)
        nursery.start_soon(change, admission, SEARCH / 2)
        await wait_all_tasks_blocked()
        await in_order(nursery, *(lambda n=n: read(admission, begun, n) for n in range(5)))
    assert [at - now for _, at in begun] == pytest.approx([0.0, *[SEARCH / 2] * 4])


@pytest.mark.autojump
@pytest.mark.parametrize("seconds", [0.001, 0.008, 0.05, 1.0])
async def test_continuous_changes_do_not_starve_reads(seconds: float) -> None:
    """Reads share the throughput of one reader evenly, however long each change takes."""
    admission, begun, until = Admission(), list[tuple[int, float]](), trio.current_time() + LASTING

    async def keep_changing() -> None:
        while trio.current_time() < until:
            await change(admission, seconds)

    async def keep_reading(number: int) -> None:
        while trio.current_time() < until:
            await read(admission, begun, number)

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(keep_changing)
        for number in range(14):
            nursery.start_soon(keep_reading, number)
    assert len(begun) >= LASTING / SEARCH
    of_each = [sum(number == each for each, _ in begun) for number in range(14)]
    assert max(of_each) - min(of_each) <= 0.1 * max(of_each)


@pytest.mark.autojump
async def test_slow_read_delays_other_waiting_reads_only_briefly() -> None:
    admission, begun = Admission(), list[tuple[int, float]]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(change, admission, SERVED)
        await wait_all_tasks_blocked()
        now = trio.current_time()
        await in_order(nursery, *(lambda n=n: read(admission, begun, n, 60.0) for n in range(4)))
    assert [at - now for _, at in begun] == pytest.approx([LENT * n for n in range(4)])


@pytest.mark.autojump
async def test_long_change_has_priority_for_a_limited_time() -> None:
    admission, begun = Admission(), list[tuple[int, float]]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(change, admission, 60.0)
        await trio.sleep(SERVED)
        now = trio.current_time()
        for number in range(5):
            nursery.start_soon(read, admission, begun, number)
    assert {at for _, at in begun} == {now}


@pytest.mark.autojump
async def test_nested_call_does_not_deadlock() -> None:
    admission, begun = Admission(), list[tuple[int, float]]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(change, admission, 1.0)
        await wait_all_tasks_blocked()
        with trio.fail_after(LENT * 2), admission.changing():
            async with admission.reading():
                await read(admission, begun, 1)
    assert len(begun) == 1


@pytest.mark.autojump
async def test_cancelled_read_frees_its_slot_and_queue_position() -> None:
    admission, begun = Admission(), list[tuple[int, float]]()
    running, waiting = trio.CancelScope(), trio.CancelScope()

    async def cancellable(scope: trio.CancelScope, number: int) -> None:
        with scope:
            await read(admission, begun, number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(change, admission, 1.0)
        await wait_all_tasks_blocked()
        now = trio.current_time()
        await in_order(
            nursery,
            lambda: cancellable(running, 1),
            lambda: cancellable(waiting, 2),
            lambda: read(admission, begun, 3),
        )
        waiting.cancel()
        await wait_all_tasks_blocked()
        assert admission.waiting == 1
        running.cancel()
    assert [number for number, _ in begun] == [1, 3]
    assert begun[1][1] == now


@pytest.mark.autojump
@pytest.mark.parametrize("is_cancelled_first", [True, False])
async def test_read_cancelled_on_admission_frees_its_slot(
    is_cancelled_first: bool,
) -> None:
    admission, begun = Admission(), list[tuple[int, float]]()
    scope = trio.CancelScope()

    async def cancellable() -> None:
        with scope:
            await read(admission, begun, 1)

    async with trio.open_nursery() as nursery:
        with admission.changing():
            async with admission.reading():
                await in_order(nursery, cancellable)
                assert admission.waiting == 1
                if is_cancelled_first:
                    scope.cancel()
            scope.cancel()
    assert len(begun) == (0 if is_cancelled_first else 1)
    with admission.changing(), trio.fail_after(LENT / 2):
        await read(admission, begun, 2)


class _Steps(trio.abc.Instrument):
    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1


@pytest.mark.autojump
async def test_waiting_cost_grows_linearly_with_the_number_of_reads() -> None:
    """Only the first task in the queue may wake up before its turn."""
    costs: list[float] = []
    for number in (100, 400):
        admission, begun, steps = Admission(), list[tuple[int, float]](), _Steps()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(change, admission, 60.0)
            await wait_all_tasks_blocked()
            for each in range(number):
                nursery.start_soon(read, admission, begun, each, 0.0001)
            await wait_all_tasks_blocked()
            trio.lowlevel.add_instrument(steps)
            await trio.sleep(SERVED)
            trio.lowlevel.remove_instrument(steps)
            nursery.cancel_scope.cancel()
        assert len(begun) == number
        costs.append(steps.count / number)
    assert costs[1] <= 1.2 * costs[0]


async def test_only_expensive_reads_wait_for_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, searching, begun = trio.Event(), Search.search, list[str]()

    async def search(self: Search, request: Any) -> Any:
        begun.append(request.query)
        await held.wait()
        return await searching(self, request)

    monkeypatch.setattr(Search, "search", search)
    async with serving(tmp_path) as lithos:
        specs = {spec.name: spec for spec in lithos.server.tools.listed()}
        heavy = {tool.name for tool in all_tools() if tool.is_heavy}
        assert len(heavy & specs.keys()) == 6
        assert heavy - specs.keys() == {"search"}, "which only clients let in from elsewhere are told of"
        assert all(specs[name].read_only for name in heavy & specs.keys())
        admission: Admission = lithos.server.tools._admission
        admission._lent = 60.0
        written = await lithos.call("lithos_write", title="A", content="apples", agent="a")
        async with trio.open_nursery() as nursery:
            with admission.changing():
                for query in ("apples", "pears"):
                    nursery.start_soon(partial(lithos.call, "lithos_search", query=query))
                while not begun:
                    await trio.sleep(0.001)
                assert admission.waiting == 1
                assert (await lithos.call("lithos_read", id=written["id"]))["title"] == "A"
                assert len(begun) == 1
                held.set()
                while len(begun) < 2:
                    await trio.sleep(0.001)
        assert admission.waiting == 0
