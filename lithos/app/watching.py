"""The watcher and the deletion guard of a server."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lithos.actors.blocking import Threads
from lithos.actors.catalogue import Catalogue
from lithos.actors.guard import DeletionGuard
from lithos.actors.indexer import Indexer
from lithos.actors.watcher import Watcher
from lithos.actors.writer import WriterMailbox
from lithos.app.stores import Stores
from lithos.config import Config
from lithos.metrics import Metrics
from lithos.stores.vanished import VanishedFiles


def make_guard(config: Config, stores: Stores, catalogue: Catalogue) -> DeletionGuard:
    """The guard, which the start scan asks first."""
    vanished = VanishedFiles(config.storage.data_dir / ".lithos")
    return DeletionGuard(catalogue, stores.files, vanished, Threads(), config.index.max_vanished_fraction)


def make_watcher(
    config: Config,
    stores: Stores,
    catalogue: Catalogue,
    writer: WriterMailbox,
    guard: DeletionGuard,
    indexers: Sequence[Indexer],
    metrics: Metrics,
) -> Watcher:
    """The watcher; switched off, it still ends what the guard began."""
    return Watcher(
        config.index.watch_mode if config.server.watch_files else "off",
        config.index.watch_debounce_ms / 1_000,
        catalogue,
        stores.files,
        writer,
        guard,
        indexers,
        Threads(),
        partial(metrics.count, "file_watcher_events"),
    )
