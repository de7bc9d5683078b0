"""Effects of a server on its process: no garbage collection during startup, and no threads after shutdown."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import pytest
import trio
import trio.testing

from lithos.app.server import running_server
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.databases.lock import AlreadyOwned, OwnerLock
from lithos.kernel.settings import StorageConfig
from lithos.server.settings import ServerConfig
from tests.servers import serving


@pytest.mark.usefixtures("frozen_by_servers")
async def test_running_server_collects_garbage_but_not_startup_objects(tmp_path: Path) -> None:
    async with serving(tmp_path):
        await trio.testing.wait_all_tasks_blocked()
        assert gc.isenabled()
        assert gc.get_freeze_count()
    assert gc.isenabled()
    assert not gc.get_freeze_count()


async def test_stopped_server_leaves_only_threads_cached_by_trio(
    tmp_path: Path,
) -> None:
    before = set(threading.enumerate())
    gc.disable()  # a garbage collection would end the threads of open pools
    try:
        async with serving(tmp_path) as lithos, trio.open_nursery() as nursery:
            for n in range(8):  # these files are written in one batch
                nursery.start_soon(lithos.create, f"Note {n}")
        left = [thread.name for thread in set(threading.enumerate()) - before]
    finally:
        gc.enable()
    assert [name for name in left if name.startswith(("note-files", "lithos-"))] == []


async def test_failed_start_leaves_garbage_collection_on(tmp_path: Path) -> None:
    lock = OwnerLock(tmp_path / ".lithos" / "lock")
    lock.acquire("now")
    config = Config(storage=StorageConfig(data_dir=tmp_path), server=ServerConfig(watch_files=False))
    with pytest.raises(AlreadyOwned):
        async with running_server(config):
            pass
    assert gc.isenabled()
    lock.release()
