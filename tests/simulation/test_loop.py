"""Virtual time, worker threads, and the disk of a simulation."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest
import trio

from tests.simulation.disk import SimulatedDisk, attached
from tests.simulation.loop import PROCESS, Killed, Pace, SimulatedClock, Workers
from tests.simulation.world import Life


def make_workers(clock: SimulatedClock) -> Workers:
    """Return simulated worker threads that always wait before and after a call."""
    return Workers(clock, Random(1), Pace(usual=2.0, slow_share=0.0))


def test_worker_thread_of_a_dead_process_does_nothing() -> None:
    """The kill comes after the call is requested and before the call runs."""
    clock = SimulatedClock()
    workers, done, life = make_workers(clock), list[str](), Life(0)

    async def call() -> None:
        with pytest.raises(Killed):
            await workers.run_sync(done.append, "call")

    async def main() -> None:
        PROCESS.set(life)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.sleep(0)
            life.is_dead = True

    trio.run(main, clock=clock)
    assert not done


def make_disk(folder: Path) -> SimulatedDisk:
    """Return an empty disk."""
    folder.mkdir()
    return SimulatedDisk(str(folder), clock=SimulatedClock(), random=Random(3))


def test_kill_keeps_files_that_a_power_failure_removes(tmp_path: Path) -> None:
    """Only one of the two files was synced with its name.

    A kill before the power failure does not save the other file.
    """
    disk = make_disk(tmp_path / "0")
    with attached(disk, make_workers(disk.clock)):
        for name in ("safe", "lost"):
            descriptor = os.open(f"{disk.root}/{name}", os.O_WRONLY | os.O_CREAT)
            os.write(descriptor, name.encode())
            if name == "safe":
                os.fsync(descriptor)
                folder = os.open(disk.root, os.O_RDONLY)
                os.fsync(folder)
                os.close(folder)
            os.close(descriptor)
        disk.kill(tmp_path / "1")
        assert sorted(path.read_text() for path in (tmp_path / "1").iterdir()) == ["lost", "safe"]
        kind = ""
        for number in range(2, 40):
            disk.random = Random(number)
            if (kind := disk.cut_power(tmp_path / str(number))) == "nothing unsynced":
                break
    assert kind == "nothing unsynced"
    assert (Path(disk.root) / "safe").read_text() == "safe"


def test_injected_failures_affect_only_calls_of_the_server(tmp_path: Path) -> None:
    """Failures affect only calls of the server."""
    disk = make_disk(tmp_path / "0")
    disk.faults.is_on, disk.faults.share = True, 1.0
    with attached(disk, make_workers(disk.clock)):
        with pytest.raises(OSError, match="injected"):
            (Path(disk.root) / "a").write_text("x")
        with disk.outside():
            (Path(disk.root) / "b").write_text("x")
        assert os.listdir(disk.root) == ["b"]
