"""The part of the server state that is about tasks."""

from __future__ import annotations

import trio

from lithos.events.journal.reading import JournalThread
from lithos.events.rows.store import CoordinationStore
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.kernel.metrics import GaugeSample
from lithos.kernel.parts import Clock
from lithos.kernel.state import CHECK_DEADLINE, OK, Component, Number


async def look_at_coordination(store: CoordinationStore, reading: JournalThread, clock: Clock) -> Component:
    """Return the state of the task database: whether tasks can be read."""
    try:
        with trio.fail_after(CHECK_DEADLINE):
            await reading.run(lambda: store.counts(clock()))
    except (DatabaseFailed, trio.TooSlowError) as failure:
        return Component("unavailable", f"coordination.db does not answer: {failure}")
    return OK


async def count_tasks(store: CoordinationStore, reading: JournalThread, clock: Clock) -> list[Number]:
    """Return the numbers of open tasks and of their claims."""
    now = clock()
    counts = await reading.run(lambda: store.counts(now))
    return [
        Number(40, "active_tasks", counts.active_tasks),
        Number(41, "open_claims", counts.open_claims),
        Number(80, "expired_claims", counts.expired_claims),
    ]


async def measure_claims(store: CoordinationStore, reading: JournalThread, clock: Clock) -> list[GaugeSample]:
    """Return gauges for unexpired claims and for expired claims."""
    now = clock()
    counts = await reading.run(lambda: store.counts(now))
    return [
        GaugeSample("active_claims", counts.open_claims),
        GaugeSample("expired_claims", counts.expired_claims),
    ]
