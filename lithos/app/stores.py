"""Functions that open and close the on-disk stores of all capabilities."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from lithos.app.capabilities import stores_of
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.databases.lock import OwnerLock
from lithos.kernel.databases.migrations import migrate
from lithos.kernel.databases.open_stores import Occasion, Stores
from lithos.kernel.databases.private_files import PRIVATE_FOLDER
from lithos.kernel.parts import Parts, made_by, utc_now
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.times import format_time
from lithos.notes.opening import make_lock
from lithos.upkeep.files.backup import finish_restore


def open_stores(config: Config, lock: OwnerLock | None = None) -> Stores:
    """Open all stores, and lock the data directory unless `lock` is given. Blocks.

    If opening fails, the lock is released. Raises `AlreadyOwned`, `CorruptDatabase` (coordination.db) and
    `OSError`.
    """
    storage = config.of(StorageConfig)
    data = storage.data_dir
    private = data / ".lithos"
    made = (private, storage.notes_folder) if storage.vault is None else (private,)
    fresh = frozenset(above for folder in made for above in _missing(folder))
    private.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    now = utc_now()
    if lock is None:
        lock = make_lock(storage)
        lock.acquire(format_time(now))
    undo = ExitStack()
    undo.callback(lock.release)
    with undo:
        finish_restore(data)
        opened = _open(config, Occasion(data, private, now, fresh), undo)
        return Stores(lock, opened, undo.pop_all())


def _open(config: Config, occasion: Occasion, undo: ExitStack) -> Mapping[Any, Any]:
    """Return the opened stores by class. Callbacks on `undo` close them."""
    declared, opened = stores_of(), dict[Any, Any]()
    given = {Config: config, Occasion: occasion, **config.by_class}
    parts, is_migrated = Parts((each.open for each in declared), given), False
    for each in declared:
        if each.place >= 0 and not is_migrated:
            migrate(occasion.data, occasion.now)
            is_migrated = True
        kind = made_by(each.open)
        store: Any = parts.find(kind)
        opened[kind] = store
        if hasattr(store, "close"):
            undo.enter_context(closing(store))
    return opened


def _missing(folder: Path) -> list[Path]:
    """Return the missing folders among a folder and its parents."""
    return [above for above in (folder, *folder.parents) if not above.exists()]


def close_stores(stores: Stores) -> None:
    """Close all stores and release the data directory, even if closing one of them fails. Blocks."""
    stores.closing.close()
