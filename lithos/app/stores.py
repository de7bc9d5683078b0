"""Composition of the stores: opening, crash recovery, closing; ownership of the data directory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path

import trio

from lithos.actors.blocking import Threads
from lithos.app.vault import make_lock, open_notes, style_of
from lithos.config.catalogue import Config
from lithos.core.times import format_time, from_nanoseconds
from lithos.history.settings import HistoryConfig
from lithos.kernel.settings import StorageConfig
from lithos.notes.settings import IndexConfig
from lithos.stores import PRIVATE_FOLDER, sync_folder
from lithos.stores.backup import finish_restore
from lithos.stores.coordination.store import CoordinationStore
from lithos.stores.database import Database
from lithos.stores.history.store import HISTORY, HistoryStore
from lithos.stores.indexes.fulltext import FulltextIndex
from lithos.stores.indexes.fulltext_schema import remove_index
from lithos.stores.learning.edges import EdgeStore
from lithos.stores.learning.stats import StatsStore
from lithos.stores.lock import CONFIRM_EVERY, OwnerLock
from lithos.stores.manifest import Manifest
from lithos.stores.migrations import migrate
from lithos.stores.notes.displaced import DISPLACED, CopyMerges, Displaced, Moves
from lithos.stores.notes.files import NoteFiles
from lithos.stores.notes.values import Kept
from lithos.stores.on_disk import Stores
from lithos.telemetry import get_logger

log = get_logger("lithos.app")


def utc_now() -> datetime:
    """Now, aware and in UTC."""
    return datetime.now(UTC)


async def keep_owning(lock: OwnerLock, databases: Sequence[Database] = ()) -> None:
    """Check periodically that the lock file and the databases are in their place, until cancelled.

    Raises `AlreadyOwned` when another process got the directory meanwhile.
    """
    looking = Threads()

    def look() -> None:
        lock.confirm()
        for database in databases:
            database.look()

    while True:
        await looking.run(look)
        await trio.sleep(CONFIRM_EVERY)


def open_stores(config: Config, lock: OwnerLock | None = None) -> Stores:
    """Acquire the lock of the data directory, unless `lock` is given, and open all stores. Blocks.

    A failure gives the lock up. Raises `AlreadyOwned`, `CorruptDatabase` (coordination.db) and `OSError`.
    """
    storage = config.of(StorageConfig)
    data = storage.data_dir
    private, vault = data / ".lithos", storage.vault
    made = (private, storage.notes_folder) if vault is None else (private,)
    fresh = {above for folder in made for above in _missing(folder)}
    private.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    now = utc_now()
    if lock is None:
        lock = make_lock(storage)
        lock.acquire(format_time(now))
    undo = ExitStack()
    undo.callback(lock.release)
    kept = undo.enter_context
    with undo:
        finish_restore(data)
        files = kept(closing(open_notes(storage)))
        files.create_root()
        _sync_names({data, *(folder.parent for folder in fresh)})
        displaced = Displaced(private / DISPLACED)
        _recover(files, displaced, max(now, _last_written(private)))
        migrate(data, now)
        coordination = kept(closing(CoordinationStore.open(private / "coordination.db", now)))
        edges = kept(closing(EdgeStore.open(private / "edges.db", now)))
        stats = kept(closing(StatsStore.open(private / "stats.db", now)))
        history = None
        if config.of(HistoryConfig).enabled:
            history = kept(closing(HistoryStore.open(private / HISTORY, now)))
        manifest = kept(closing(Manifest.open(private / "manifest.db", now)))
        style = style_of(storage)
        # What the indexes hold was read by the rules of the time. They go first: a crash may come in between.
        is_read_otherwise = manifest.reading != style.reading and not manifest.is_new
        if is_read_otherwise or config.of(IndexConfig).rebuild_on_start:
            _drop_indexes(data)
        manifest.read_by(style.reading)
        fulltext = kept(closing(FulltextIndex.open(data / ".tantivy")))
        ending = undo.pop_all()
    if fulltext.was_rebuilt and not manifest.is_new:
        log.warning("full-text index is built anew", reason=fulltext.rebuild_reason)
    moves, copy_merges = Moves(private), CopyMerges(private)
    return Stores(
        lock,
        files,
        displaced,
        coordination,
        edges,
        stats,
        manifest,
        fulltext,
        moves,
        copy_merges,
        history,
        style,
        ending,
    )


def _last_written(private: Path) -> datetime:
    """When an earlier process wrote a database: a machine without a battery begins in 1970 once more."""
    times = [path.stat().st_mtime_ns for path in private.glob("*.db*")]
    return from_nanoseconds(max(times, default=0))


def _recover(files: NoteFiles, displaced: Displaced, now: datetime) -> None:
    """Crash recovery, before anything else: leftovers of a process that died in the middle of a change."""

    def save(kept: Kept, data: bytes) -> None:
        note = files.relative(kept.note)
        path = displaced.save(note, data, now)
        log.warning("bytes that another program saved were displaced", path=note, kept_as=str(path))

    tidied = files.recover(save)
    if tidied:
        log.info("leftover temporary files removed", files=tidied)


def _missing(folder: Path) -> list[Path]:
    """The folder and those above it that are not there yet."""
    return [above for above in (folder, *folder.parents) if not above.exists()]


def _sync_names(folders: Iterable[Path]) -> None:
    """Make the names in folders durable: whatever is synced below a name that is lost is lost with it."""
    for folder in sorted(folders):
        try:
            sync_folder(folder)
        except OSError as failure:  # one that may not be read, or a file system that cannot
            log.warning("folder not synced", folder=str(folder), reason=str(failure))


def _drop_indexes(data: Path) -> None:
    """Forget rebuildable state: the start then makes it anew from the notes."""
    for name in (".tantivy", ".usearch"):
        if (data / name).exists():
            remove_index(data / name)


def close_stores(stores: Stores) -> None:
    """Close everything and give the data directory up, whatever of it fails. Blocks."""
    stores.closing.close()
