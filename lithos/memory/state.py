"""The part of the server state that is about memory."""

from __future__ import annotations

from lithos.kernel.databases.database import trouble_of
from lithos.kernel.metrics import GaugeSample
from lithos.kernel.state import OK, Component
from lithos.memory.learning.actor import Memory
from lithos.memory.retrieve.feedback import Learning


def look_at_memory(memory: Memory) -> Component:
    """Return the state of the memory databases: whether they can be written."""
    troubles = [trouble for store in memory.databases if (trouble := trouble_of(store))]
    return Component("degraded", ". ".join(troubles)) if troubles else OK


async def measure_queue(learning: Learning) -> list[GaugeSample]:
    """Return the number of notes that wait for enrichment."""
    length = await learning.read(lambda tables: tables.queue.length())
    return [GaugeSample("lcma_enrich_queue_depth", length)]
