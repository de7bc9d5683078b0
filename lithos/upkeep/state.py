"""Health and gauges of the server: data directory, disk and start duration."""

from __future__ import annotations

from collections.abc import Iterator
from shutil import disk_usage

from lithos import __version__
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.databases.open_stores import Stores
from lithos.kernel.log import get_logger
from lithos.kernel.metrics import GaugeSample
from lithos.kernel.settings import StorageConfig
from lithos.kernel.state import OK, Component
from lithos.server.service_state import GaugeThread

log = get_logger("lithos.gauges")


def look_at_ownership(stores: Stores) -> Component:
    """Report whether the data directory and its databases are still in place."""
    troubles = [stores.lock.trouble, *(database.loss for database in stores.databases)]
    told = ". ".join(filter(None, troubles))
    return Component("degraded", told) if told else OK


def measure_start(opening: Opening) -> Iterator[GaugeSample]:
    """Yield the version of the server and the duration of its start."""
    yield GaugeSample("build_info", 1, (__version__,))
    yield GaugeSample("startup_duration_seconds", opening.seconds)


async def measure_disk(storage: StorageConfig, thread: GaugeThread) -> list[GaugeSample]:
    """Return the free space of the disk with the data directory.

    Return nothing if the space cannot be read.
    """
    data = storage.data_dir
    try:
        found = await thread.run(lambda: disk_usage(data))
    except OSError as failure:
        log.warning("disk space not readable", path=str(data), reason=str(failure))
        return []
    return [GaugeSample("disk_free_bytes", found.free), GaugeSample("disk_size_bytes", found.total)]
