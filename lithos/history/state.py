"""Health and metrics of the history."""

from __future__ import annotations

from lithos.history.rows.store import HistoryFailed, HistoryStore
from lithos.kernel.databases.database import trouble_of
from lithos.kernel.log import get_logger
from lithos.kernel.metrics import GaugeSample
from lithos.kernel.state import OK, Component
from lithos.server.service_state import GaugeThread

log = get_logger("lithos.gauges")


def look_at_history(versions: HistoryStore | None) -> Component:
    """Return the component that reports whether versions can be kept."""
    if versions is None:
        return Component("ok", details={"enabled": False})
    trouble = trouble_of(versions)
    if trouble is None:
        return OK
    if versions.failure:
        trouble += ". Until then changes to notes are refused, because their versions could not be kept"
    return Component("degraded", trouble)


async def measure_history(versions: HistoryStore | None, thread: GaugeThread) -> list[GaugeSample]:
    """Return the size of `history.db` as gauges, if versions are kept."""
    if versions is None:
        return []
    try:
        kept, size = await thread.run(versions.size)
    except HistoryFailed as failure:
        log.warning("gauges dropped", reason=failure.message)
        return []
    return [GaugeSample("history_versions", kept), GaugeSample("history_bytes", size)]
