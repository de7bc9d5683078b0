"""Disk errors: the watcher continues when a disk recovers after it failed or hung."""

from __future__ import annotations

import errno

import pytest
import trio

from lithos.kernel.values.events import NOTE_CREATED
from lithos.notes.files.system_calls import KernelCalls
from lithos.notes.watching.watcher import LONGEST_PAUSE, TICK, Watcher
from tests.kernel.actors.watched import note

HOURS = 7_200.0


async def test_unreadable_file_is_read_by_the_next_comparison(house, monkeypatch):
    """behaviour 22: a file that a disk error makes unreadable is missing only while the error lasts."""
    read = KernelCalls.read

    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    async with house.watching():
        house.put("a.md", note(1))
        with monkeypatch.context() as patch:
            patch.setattr(KernelCalls, "read", fail)
            await house.settle_paths("a.md")
        assert KernelCalls.read is read
        assert "Input/output error" in house.catalogue.skipped["a.md"].reason
        await house.compare()
        assert house.path_of(1) == "a.md"
        assert not house.catalogue.skipped
    assert house.told() == [(NOTE_CREATED, "a.md")]


@pytest.mark.autojump
async def test_comparison_that_hung_for_hours_is_repeated_within_a_minute(house, monkeypatch):
    """behaviour 199: a sleeping disk hides changes, but they are noticed immediately afterwards."""
    times: list[float] = []

    async def look(_: Watcher) -> None:
        times.append(trio.current_time())
        if len(times) == 3:
            await trio.sleep(HOURS)

    monkeypatch.setattr(Watcher, "_look", look)
    watcher = Watcher(
        "poll",
        0.1,
        house.guard,
        house.writer.mailbox,
        house.indexers,
        lambda _: None,
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(watcher.start, watcher.mailbox.inbox)
        await trio.sleep(HOURS + 2 * LONGEST_PAUSE)
        nursery.cancel_scope.cancel()
    assert times[3] == times[2] + HOURS + LONGEST_PAUSE
    assert times[4] == times[3] + TICK
