"""Opening and closing what is on disk."""

from __future__ import annotations

import shutil
from pathlib import Path

from attrs import frozen

from lithos.app.clock import utc_now
from lithos.config import Config
from lithos.core.times import format_time
from lithos.stores.coordination import CoordinationStore
from lithos.stores.edges import EdgeStore
from lithos.stores.files import NoteFiles
from lithos.stores.fulltext import FulltextIndex
from lithos.stores.lock import OwnerLock
from lithos.stores.manifest import Manifest
from lithos.stores.migrations import migrate
from lithos.stores.stats import StatsStore
from lithos.telemetry import get_logger

log = get_logger("lithos.app")


@frozen
class Stores:
    """What is open on disk; closed in reverse order."""

    lock: OwnerLock
    files: NoteFiles
    coordination: CoordinationStore
    edges: EdgeStore
    stats: StatsStore
    manifest: Manifest
    fulltext: FulltextIndex


def open_stores(config: Config, lock: OwnerLock | None = None) -> Stores:
    """Take the data directory, unless `lock` has it already, and open everything in it. Blocks.

    A failure gives the lock up. Raises `AlreadyOwned`, `CorruptDatabase` (coordination.db) and `OSError`.
    """
    data = config.storage.data_dir
    private = data / ".lithos"
    private.mkdir(parents=True, exist_ok=True)
    now = utc_now()
    if lock is None:
        lock = OwnerLock(private / "lock")
        lock.acquire(format_time(now))
    try:
        files = NoteFiles(data / config.storage.knowledge_subdir)
        files.create_root()
        swept = files.sweep_temporary()
        if swept:
            log.info("leftover temporary files removed", files=swept)
        migrate(data, now)
        coordination = CoordinationStore.open(private / "coordination.db", now)
        edges = EdgeStore.open(private / "edges.db", now)
        stats = StatsStore.open(private / "stats.db", now)
        manifest = Manifest.open(private / "manifest.db", now)
        if config.index.rebuild_on_start:
            _drop_indexes(data)
        fulltext = FulltextIndex.open(data / ".tantivy")
    except BaseException:
        lock.release()
        raise
    if fulltext.was_rebuilt and not manifest.is_new:
        log.warning("full-text index is built anew", reason=fulltext.rebuild_reason)
    return Stores(lock, files, coordination, edges, stats, manifest, fulltext)


def _drop_indexes(data: Path) -> None:
    """Forget rebuildable state: the start then makes it anew from the notes."""
    for name in (".tantivy", ".usearch", ".graph"):
        if (data / name).exists():
            shutil.rmtree(data / name)


def close_stores(stores: Stores) -> None:
    """Close everything and give the data directory up. Blocks."""
    stores.fulltext.close()
    stores.manifest.close()
    stores.stats.close()
    stores.edges.close()
    stores.coordination.close()
    stores.lock.release()
