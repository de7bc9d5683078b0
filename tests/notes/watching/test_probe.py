"""The probe for file notifications, with a simulated clock."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
import trio

from lithos.notes.files.files import NoteFiles
from lithos.notes.watching.notifications import PROBE_BOUND, PROBE_NAME, Probe

pytestmark = pytest.mark.autojump
T = TypeVar("T")


class Busy:
    """Threads that start a job only after some seconds, as they do while a starting server compares files."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def run(self, call: Callable[[], T]) -> T:
        await trio.sleep(self.seconds)
        return call()


@pytest.mark.parametrize("seconds", [0.0, PROBE_BOUND * 3])
async def test_probe_file_is_removed_however_long_its_thread_takes(tmp_path: Path, seconds: float) -> None:
    """Seed 149 of the simulation: the wait for a thread was limited, and the file was never removed."""
    probe = Probe(NoteFiles(tmp_path), Busy(seconds))
    assert await probe.is_noticed() is False
    assert os.listdir(tmp_path) == []


async def test_notification_counts_however_long_the_first_write_waits(tmp_path: Path) -> None:
    """A folder with working notifications must not be polled only because its start was busy."""
    probe = Probe(NoteFiles(tmp_path), Busy(PROBE_BOUND * 3))
    noticed: list[bool] = []

    async def ask() -> None:
        noticed.append(await probe.is_noticed())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        while not (tmp_path / PROBE_NAME).exists():
            await trio.sleep(0.1)
        probe.look_for_it({PROBE_NAME})
    assert noticed == [True]


async def test_cancelled_probe_leaves_no_file(tmp_path: Path) -> None:
    """The server is stopped during its start."""
    with trio.move_on_after(0.01):
        await Probe(NoteFiles(tmp_path), Busy(0.0)).is_noticed()
    assert os.listdir(tmp_path) == []
