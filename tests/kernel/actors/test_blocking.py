"""The thread port and the inline port follow the same contract."""

from __future__ import annotations

import os
import threading

import pytest
import trio

from lithos.kernel.actors.threads import BackgroundThread, Inline, Threads


@pytest.fixture(params=[Threads, Inline, lambda: BackgroundThread("test")])
def blocking(request):
    return request.param()


async def test_blocking_call_returns_result(blocking):
    assert await blocking.run(lambda: 42) == 42


async def test_exception_of_a_blocking_call_is_raised_unchanged(blocking):
    def fail() -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        await blocking.run(fail)


async def test_blocking_call_is_a_checkpoint(blocking):
    with trio.CancelScope() as scope:
        scope.cancel()
        await blocking.run(lambda: 42)
    assert scope.cancelled_caught


async def test_calls_of_one_store_never_overlap(blocking):
    active, most, lock = 0, 0, threading.Lock()

    def call() -> None:
        nonlocal active, most
        with lock:
            active += 1
            most = max(most, active)
        os.sched_yield()
        with lock:
            active -= 1

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(blocking.run, call)
    assert most == 1


async def test_blocking_call_needs_no_loop_turn_when_thread_is_free():
    """During searches, a turn takes milliseconds, and a write has several thread jobs in sequence."""
    threads = Threads()

    async def ask(asked: trio.Event, begun: threading.Event) -> None:
        asked.set()
        await threads.run(begun.set)

    for _ in range(10):  # trio runs the tasks of a loop turn in random order
        asked, begun = trio.Event(), threading.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, asked, begun)
            await asked.wait()
            assert begun.wait(5.0)  # this blocks the event loop


async def test_started_blocking_call_finishes_despite_cancellation():
    begun, release, done = threading.Event(), threading.Event(), []

    def call() -> None:
        begun.set()
        release.wait(10)
        done.append(True)

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Threads().run, call)
            await trio.to_thread.run_sync(begun.wait, 10)
            scope.cancel()
            release.set()
    assert done == [True]
