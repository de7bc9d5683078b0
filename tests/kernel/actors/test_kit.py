"""The actor kit: mailboxes, batches, supervision and stopping."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import assert_no_checkpoints, wait_all_tasks_blocked

from lithos.kernel.actors.mailboxes import (
    ActorDown,
    ActorGaveUp,
    Mailbox,
    ShuttingDown,
    run_batches,
    supervise,
)

pytestmark = pytest.mark.autojump


def make_box(capacity: int = 8) -> Mailbox[Any, Any]:
    return Mailbox("x", capacity)


def simple(flush: Callable[[Sequence[Any]], Any], **settings: Any) -> Any:
    settings = {"size": 3, "linger": 0.2, **settings}

    async def start(inbox: Any, *, task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        await run_batches(inbox, flush, **settings)

    return start


@asynccontextmanager
async def acting(box: Mailbox[Any, Any], start: Any) -> AsyncIterator[trio.Nursery]:
    """Run a supervised actor. On exit, its mailbox is closed and all started work is awaited."""
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(supervise, box, start))
        yield nursery
        box.close()


async def echo(messages: Sequence[Any]) -> Sequence[Any]:
    return messages


async def fail(messages: Sequence[Any]) -> Sequence[Any]:
    raise OSError("disk")


class Kept:
    """A flush that takes `seconds`, waits for its gate and records the batch.

    The first flush of a `Kept` fails with its `failure`, if there is one.
    """

    def __init__(self, seconds: float = 0.0, failure: Exception | None = None) -> None:
        self.batches: list[list[Any]] = []
        self.gate = trio.Event()
        self.gate.set()
        self.seconds, self.failure = seconds, failure

    def shut(self) -> None:
        self.gate = trio.Event()

    @property
    def applied(self) -> list[Any]:
        return [message for batch in self.batches for message in batch]

    async def __call__(self, messages: Sequence[Any]) -> Sequence[Any]:
        await trio.sleep(self.seconds)
        await self.gate.wait()
        self.batches.append(list(messages))
        if self.failure is not None and len(self.batches) == 1:
            raise self.failure
        return messages


class Recorder:
    """Sender of messages that records the replies and errors."""

    def __init__(self, box: Mailbox[Any, Any]) -> None:
        self.box = box
        self.answers: list[Any] = []

    async def ask(self, message: Any) -> None:
        try:
            self.answers.append(await self.box.ask(message))
        except (ActorDown, ShuttingDown, trio.TooSlowError, ValueError) as failure:
            self.answers.append(type(failure))


# -- batches ----------------------------------------------------------------------------------------


async def test_batch_is_flushed_by_count_or_by_age():
    seen, began, box = [], trio.current_time(), make_box()

    async def flush(messages):
        seen.append((trio.current_time() - began, len(messages)))
        return [message * 10 for message in messages]

    recorder = Recorder(box)
    async with acting(box, simple(flush)), trio.open_nursery() as callers:
        for i in range(4):
            callers.start_soon(recorder.ask, i)
    assert sorted(recorder.answers) == [0, 10, 20, 30]
    assert [size for _, size in seen] == [3, 1]
    assert seen[1][0] == pytest.approx(0.2)


async def test_late_message_does_not_delay_batch_deadline():
    seen, began, box = [], trio.current_time(), make_box()

    async def flush(messages):
        seen.append((trio.current_time() - began, list(messages)))
        return messages

    async with acting(box, simple(flush, size=10, linger=1.0)):
        await box.post(1)
        await trio.sleep(0.9)
        await box.post(2)
        await trio.sleep(0.5)
    assert seen == [(pytest.approx(1.0), [1, 2])]


async def test_batch_without_linger_takes_only_waiting_messages():
    box, flush = make_box(), Kept()
    flush.shut()

    async with acting(box, simple(flush, size=10, linger=0.0)):
        for i in range(4):
            await box.post(i)
            await wait_all_tasks_blocked()
        flush.gate.set()
    assert flush.batches == [[0], [1, 2, 3]]


async def test_closed_mailbox_flushes_batch_at_once():
    box, flush = make_box(10), Kept()

    for i in range(5):
        await box.post(i)
    box.close()
    began = trio.current_time()
    await supervise(box, simple(flush, size=100, linger=60))
    assert flush.batches == [[0, 1, 2, 3, 4]]
    assert trio.current_time() == began


async def test_mailbox_keeps_message_order():
    box, flush = make_box(4), Kept(0.01)

    async with acting(box, simple(flush, linger=0.0)):
        for i in range(50):
            await box.post(i)
    assert flush.applied == list(range(50))


async def test_refusal_is_a_reply_and_does_not_crash_actor():
    runs, box = [], make_box()

    async def flush(messages):
        runs.append(len(messages))
        return [ValueError("slug taken") if message == 1 else message for message in messages]

    recorder = Recorder(box)
    async with acting(box, simple(flush)), trio.open_nursery() as callers:
        for i in range(3):
            callers.start_soon(recorder.ask, i)
    assert set(recorder.answers) == {0, 2, ValueError}
    assert runs == [3]
    assert box.stats.restarts == 0


async def test_too_few_replies_crash_the_actor_and_fail_all_callers():
    calls, box = [], make_box()

    async def flush(messages):
        calls.append(list(messages))
        return messages if len(calls) > 1 else messages[:1]

    recorder = Recorder(box)
    async with acting(box, simple(flush, size=2)):
        async with trio.open_nursery() as callers:
            for i in range(2):
                callers.start_soon(recorder.ask, i)
        assert await box.ask("again") == "again"
    assert recorder.answers == [ActorDown, ActorDown]


async def test_actor_stats_count_messages_batches_and_busy_time():
    box, flush = make_box(), Kept(2)

    async with trio.open_nursery() as nursery:
        start = simple(flush, size=2, linger=0.0, stats=box.stats)
        for i in range(4):
            await box.post(i)
        assert box.depth == 4
        await nursery.start(partial(supervise, box, start))
        box.close()
    assert (box.stats.handled, box.stats.batches, box.stats.busy_seconds) == (4, 2, pytest.approx(4))
    assert box.stats.capacity == 8
    assert box.depth == 0


# -- post, ask, nudge -------------------------------------------------------------------------------


async def test_sender_collects_the_reply_to_a_posted_message_later():
    box = make_box()
    async with acting(box, simple(echo)):
        envelopes = [await box.post(i) for i in range(3)]
        assert [await envelope.reply() for envelope in envelopes] == [0, 1, 2]


async def test_posted_message_is_handled_without_a_waiting_caller():
    box, flush = make_box(), Kept()

    await box.post("alone")
    box.close()
    await supervise(box, simple(flush))
    assert flush.applied == ["alone"]


async def test_post_takes_no_loop_turn_when_mailbox_has_space():
    box = Mailbox("x", 2)
    with assert_no_checkpoints():
        for number in range(2):
            await box.post(number)
    with trio.move_on_after(0.01) as full:
        await box.post(2)
    assert full.cancelled_caught
    assert box.depth == 2


async def test_nudge_never_waits_and_never_fails():
    box, flush = make_box(1), Kept()
    box.nudge("kept")
    box.nudge("dropped: the mailbox is full")
    assert box.depth == 1

    box.close()
    box.nudge("dropped: closed")
    await supervise(box, simple(flush))
    box.nudge("dropped: gone")
    assert flush.applied == ["kept"]


async def test_message_is_never_applied_after_timeout_in_queue():
    box, flush = make_box(), Kept()
    flush.shut()
    async with acting(box, simple(flush, size=1, limit=100)) as nursery:
        nursery.start_soon(box.ask, "held")
        await wait_all_tasks_blocked()
        with pytest.raises(trio.TooSlowError):
            await box.ask("late", within=1)
        flush.gate.set()
        assert await box.ask("ok") == "ok"
    assert flush.applied == ["held", "ok"]


@pytest.mark.parametrize("capacity", [0, 8])
async def test_suspended_process_keeps_waiting_for_earlier_requests(capacity):
    """The clock continues during the suspension.

    The actor was suspended as well, so it does not count as too slow.
    """
    box = make_box(capacity)

    async def flush(messages: Sequence[Any]) -> Sequence[Any]:
        await trio.sleep(1)
        if messages == ["stopped"]:
            trio.lowlevel.current_clock().jump(1_000)
        await trio.sleep(1)
        return messages

    async with acting(box, simple(flush, size=1, limit=5_000)), trio.open_nursery() as callers:
        answers = []

        async def ask(message: str) -> None:
            answers.append(await box.ask(message, within=30))

        callers.start_soon(ask, "stopped")
        await wait_all_tasks_blocked()
        callers.start_soon(ask, "queued")
    assert answers == ["stopped", "queued"]


async def test_slow_request_times_out_at_its_deadline():
    box, flush = make_box(), Kept()
    flush.shut()
    async with acting(box, simple(flush, size=1, limit=5_000)) as nursery:
        nursery.start_soon(partial(box.ask, "held", within=90))
        await wait_all_tasks_blocked()
        began = trio.current_time()
        with pytest.raises(trio.TooSlowError):
            await box.ask("late", within=30)
        assert trio.current_time() - began == pytest.approx(30)
        flush.gate.set()


async def test_cancelled_request_is_not_applied():
    box, flush = make_box(), Kept()
    flush.shut()
    async with acting(box, simple(flush, size=1, limit=100)) as nursery:
        nursery.start_soon(box.ask, "held")
        await wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as callers:
                callers.start_soon(box.ask, "cancelled")
                await wait_all_tasks_blocked()
                scope.cancel()
        flush.gate.set()
    assert flush.applied == ["held"]


async def test_cancelled_caller_does_not_stop_a_running_request():
    box, flush = make_box(), Kept()
    flush.shut()
    async with acting(box, simple(flush, size=1, linger=0.0)):
        with trio.move_on_after(1):
            await box.ask("underway")
        flush.gate.set()
    assert flush.applied == ["underway"]


async def test_full_mailbox_blocks_senders_and_forgets_cancelled_senders():
    box, flush = make_box(0), Kept()
    flush.shut()

    async with acting(box, simple(flush, size=1, limit=100)) as nursery:
        nursery.start_soon(box.ask, 0)
        await wait_all_tasks_blocked()
        with pytest.raises(trio.TooSlowError):
            await box.ask(1, within=1)
        assert box.inbox.statistics().tasks_waiting_send == 0
        flush.gate.set()


# -- crashes ----------------------------------------------------------------------------------------


async def test_all_callers_of_crashed_batch_get_unknown_outcome():
    box, flush = make_box(), Kept(failure=RuntimeError("bug"))

    recorder = Recorder(box)
    async with trio.open_nursery() as nursery:
        async with trio.open_nursery() as callers:
            for i in range(5):
                callers.start_soon(recorder.ask, i)
            await wait_all_tasks_blocked()
            await nursery.start(partial(supervise, box, simple(flush, size=3)))
        box.close()
    assert recorder.answers.count(ActorDown) == 3
    assert sorted(each for each in recorder.answers if each is not ActorDown) == sorted(flush.batches[1])


async def test_actor_gives_up_after_three_restarts():
    box = make_box()

    async def pester() -> None:
        while True:
            await Recorder(box).ask(1)

    with pytest.RaisesGroup(ActorGaveUp):
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(supervise, box, simple(fail, size=1)))
            nursery.start_soon(pester)
    assert box.stats.restarts == 3


async def test_crashes_far_apart_in_time_are_counted_separately():
    box, recorder = make_box(), None

    recorder = Recorder(box)
    async with acting(box, simple(fail, size=1, linger=0.0)):
        for i in range(10):
            await recorder.ask(i)
            await trio.sleep(30)
    assert recorder.answers == [ActorDown] * 10


async def test_queued_messages_stay_unapplied_when_the_actor_gives_up():
    box = make_box()

    queued = [await box.post(i) for i in range(6)]
    with pytest.raises(ActorGaveUp):
        await supervise(box, simple(fail, size=1, linger=0.0))
    causes = []
    for envelope in queued:
        with pytest.raises((ActorDown, ShuttingDown)) as caught:
            await envelope.reply()
        causes.append(caught.type)
    assert causes == [ActorDown] * 4 + [ShuttingDown] * 2


async def test_hung_flush_crashes_the_actor_after_its_time_limit():
    calls, box = [], make_box()

    async def flush(messages):
        calls.append(messages)
        if len(calls) == 1:
            await trio.sleep_forever()
        return messages

    async with acting(box, simple(flush, size=1, limit=2)):
        with pytest.raises(ActorDown):
            await box.ask(1)
        assert await box.ask(2) == 2


async def test_actor_restarts_after_exception_group():
    calls, box = [], make_box()

    async def start(inbox, *, task_status):
        task_status.started()
        calls.append(1)
        async with trio.open_nursery() as nursery:
            if len(calls) == 1:
                nursery.start_soon(partial(echo_crash))
            await run_batches(inbox, echo, size=1)

    async def echo_crash():
        raise KeyError("bug beside the inbox")

    async with acting(box, start):
        await trio.sleep(1)
        assert await box.ask(1) == 1
    assert box.stats.restarts == 1


# -- stopping and cancelling ------------------------------------------------------------------------


async def test_running_batch_is_applied_despite_cancellation():
    box, flush = make_box(), Kept(1)

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(supervise, box, simple(flush, size=1)))
            nursery.start_soon(box.ask, 1)
            await wait_all_tasks_blocked()
            scope.cancel()
    assert scope.cancelled_caught
    assert flush.applied == [1]


async def test_collected_messages_stay_unapplied_when_the_actor_is_cancelled():
    box, flush = make_box(), Kept()

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(supervise, box, simple(flush, size=10, linger=60.0)))
            collected = [await box.post(i) for i in range(3)]
            await wait_all_tasks_blocked()
            assert box.depth == 0
            scope.cancel()
    for envelope in collected:
        with pytest.raises(ShuttingDown):
            await envelope.reply()
    assert flush.applied == []


async def test_closed_mailbox_refuses_messages_unapplied():
    box = make_box()
    box.close()
    with pytest.raises(ShuttingDown):
        await box.ask(1)
    with pytest.raises(ShuttingDown):
        await box.post(1)
    box.close()


async def test_blocked_sender_gets_shutdown_when_mailbox_closes():
    box, recorder = make_box(0), None
    recorder = Recorder(box)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(recorder.ask, 1)
        await wait_all_tasks_blocked()
        box.close()
    assert recorder.answers == [ShuttingDown]


async def test_mailbox_without_an_actor_counts_as_down():
    box = make_box()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(supervise, box, simple(echo)))
            scope.cancel()
    with pytest.raises(ActorDown):
        await box.ask(1)


@pytest.mark.parametrize("is_closed", [True, False])
async def test_retrying_dead_mailbox_does_not_freeze_event_loop(is_closed):
    box, recorder = make_box(), None
    if is_closed:
        box.close()
    else:
        box.inbox.close()
    recorder = Recorder(box)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:

            async def retry() -> None:
                while True:
                    await recorder.ask(1)

            nursery.start_soon(retry)
            for _ in range(3):
                await trio.lowlevel.checkpoint()
            scope.cancel()
    assert set(recorder.answers) == {ShuttingDown if is_closed else ActorDown}


@pytest.mark.parametrize("stubborn", [False, True])
async def test_shutdown_drains_upstream_then_downstream_actors_without_losses(stubborn):
    """The drain does not wait for the front, even if the front refuses to end."""
    log: list[Any] = []
    writer, index = make_box(16), make_box(16)

    async def flush_index(messages):
        await trio.sleep(1)
        log.append(("commit", len(messages)))
        return messages

    async def flush_writer(messages):
        receipts = [await index.post(message) for message in messages]
        log.append(("write", len(messages)))
        return [await receipt.reply() for receipt in receipts]

    async def front() -> None:
        async with trio.open_nursery() as requests:
            for i in range(4):
                requests.start_soon(writer.ask, i)
        if stubborn:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 30):
                await trio.sleep(29)
        log.append("front gone")

    async with trio.open_nursery() as outer:
        async with trio.open_nursery() as actors:
            await actors.start(partial(supervise, index, simple(flush_index, size=8, linger=0.1)))
            start = simple(flush_writer, size=8, linger=0.1)
            await actors.start(partial(supervise, writer, start, closes=[index]))
            outer.start_soon(front)
            await wait_all_tasks_blocked()
            writer.close()
        log.append("actors gone")
    assert log[:2] == [("write", 4), ("commit", 4)]
    assert log[2:] == (["actors gone", "front gone"] if stubborn else log[2:])
    with pytest.raises(ShuttingDown):
        await index.post("late")


async def test_downstream_actor_stays_open_while_upstream_has_messages():
    upstream, downstream, states = make_box(), make_box(), []

    async def flush(messages):
        await downstream.post(messages[0])
        states.append(downstream.depth)
        return messages

    for i in range(3):
        await upstream.post(i)
    upstream.close()
    await supervise(upstream, simple(flush, size=1), closes=[downstream])
    assert states == [1, 2, 3]
    with pytest.raises(ShuttingDown):
        await downstream.post(4)


# -- starting ---------------------------------------------------------------------------------------


async def test_failing_boot_is_retried_until_the_actor_gives_up():
    boots = []

    async def bad(inbox, *, task_status):
        boots.append(1)
        raise ValueError("boot")

    async with trio.open_nursery() as nursery:
        with pytest.raises(ActorGaveUp):
            await nursery.start(partial(supervise, make_box(), bad))
    assert len(boots) == 4


async def test_actor_starts_when_second_boot_succeeds():
    boots, box = [], make_box()

    async def flaky(inbox, *, task_status):
        boots.append(1)
        if len(boots) == 1:
            raise ValueError("boot")
        task_status.started()
        await run_batches(inbox, echo, size=1)

    async with acting(box, flaky):
        assert await box.ask(1) == 1
    assert len(boots) == 2
