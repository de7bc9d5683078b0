"""Cost of a single write for the event loop.

The number of loop turns counts, because each may delay a search.
"""

from __future__ import annotations

from pathlib import Path

import trio

from lithos.kernel.actors.threads import Threads
from tests.fakes import Turns
from tests.servers import serving

#: Maximum event loop turns per write. Four successive thread jobs take two turns each, and actors take more.
TURNS = 15
#: Maximum thread jobs per write: intents, file and folder, version, vectors, event. Words are indexed later,
#: in batches.
JOBS = 5
#: Maximum number of writes until one is cheap enough. Background work makes some writes dearer, most of all
#: on a busy machine.
MOST = 200


async def test_write_takes_few_event_loop_turns_and_thread_jobs(tmp_path: Path, monkeypatch) -> None:
    jobs, run = [0], Threads.run

    async def counted(self, call):
        jobs[0] += 1
        return await run(self, call)

    monkeypatch.setattr(Threads, "run", counted)
    costs: list[tuple[int, int]] = []
    async with serving(tmp_path) as lithos:
        await lithos.create("First", "text")
        for number in range(MOST):
            turns = Turns()
            jobs[0] = 0
            trio.lowlevel.add_instrument(turns)
            await lithos.create(f"Note {number}", "text")
            trio.lowlevel.remove_instrument(turns)
            costs.append((turns.number, jobs[0]))
            if min(costs) <= (TURNS, JOBS):
                break
    assert min(costs) <= (TURNS, JOBS), costs
