"""A server over a copy of a data directory, for questions about its files: nothing in the original changes.

A server writes from its first moment on (its lock, ids, statistics of retrieval). So the notes, what was
learned of them and the indexes are copied to a temporary directory, with their times, so that what is indexed
is not indexed again. It calls no language model and keeps no history.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import attrs
import trio

from lithos.history.settings import HistoryConfig
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.parts import Parts
from lithos.kernel.server_ports import RunServer
from lithos.kernel.settings import StorageConfig
from lithos.notes.opening import open_notes
from lithos.search.whole_index import WholeIndex
from lithos.server.settings import ServerConfig
from lithos.server.tools.registry import Tools
from lithos.upkeep.checks.checks import look_aside
from lithos.upkeep.evaluation.evaluating import AskingFailed, Evaluation
from lithos.upkeep.files.backup import copy_database, find_links, make_links

_PRIVATE: Final = ".lithos"
#: Databases with what notes are called, what was learned of them, and how far they are indexed.
_DATABASES: Final = ("edges.db", "stats.db", "coordination.db", "manifest.db")
_INDEXES: Final = (".tantivy", ".usearch")
#: Seconds to wait for the indexes.
READY_WAIT: Final = 600.0


@asynccontextmanager
async def rehearsal_server(config: Config, run_server: RunServer) -> AsyncIterator[Parts]:
    """A server over a copy, which is deleted afterwards; every note can be searched on entry.

    No other process may own the data directory. Raises what `run_server` raises, and `FileNotFoundError`
    without a folder of notes.
    """
    stop = threading.Event()
    # An abandoned copy may still write one file while the folder is removed.
    with tempfile.TemporaryDirectory(prefix="lithos-evaluate-", ignore_cleanup_errors=True) as folder:
        try:
            copied = await look_aside(lambda: copy_for_reading(config, Path(folder), stop))
        finally:
            stop.set()
        async with run_server(copied) as server:
            with trio.move_on_after(READY_WAIT):
                await server.get(WholeIndex).complete()
            yield server


async def rehearse(
    config: Config, run_server: RunServer, ask: Callable[[Tools], Awaitable[Evaluation]]
) -> Evaluation:
    """Run the questions on a server over a copy. Raises the errors of `rehearsal_server`, and `AskingFailed`.

    Raised inside, it would come in a group with the server's own tasks.
    """
    async with rehearsal_server(config, run_server) as server:
        try:
            return await ask(server.get(Tools))
        except AskingFailed as problem:
            failure = problem
    raise failure


def copy_for_reading(config: Config, folder: Path, stop: threading.Event) -> Config:
    """Copy what is searched into `folder`; the configuration that serves the copy. Blocks.

    When no caller waits any more, `stop` ends it.
    """
    storage = config.of(StorageConfig)
    data = folder / "data"
    is_vault = storage.vault is not None
    notes = folder / "vault" if is_vault else data / storage.knowledge_subdir
    notes.mkdir(parents=True)
    _copy_notes(config, notes, stop)
    for name in _DATABASES:
        copy_database(storage.data_dir / _PRIVATE / name, data / _PRIVATE / name, is_live=False)
    for name in _INDEXES:
        with suppress(FileNotFoundError):  # there may be none yet
            shutil.copytree(storage.data_dir / name, data / name, symlinks=True)
    return config.replace(
        attrs.evolve(config.of(ServerConfig), watch_files=False, max_answer_chars=0),
        attrs.evolve(storage, data_dir=data, vault=notes if is_vault else None),
        attrs.evolve(config.of(HistoryConfig), enabled=False),
    )


def _copy_notes(config: Config, target: Path, stop: threading.Event) -> None:
    """The note files under their own names, and the links through which they are reached."""
    root = os.path.realpath(config.of(StorageConfig).notes_folder)
    for file in open_notes(config.of(StorageConfig)).list_notes():
        source = f"{root}/{file.path}"
        if stop.is_set():
            return
        if os.path.realpath(source) != source:
            continue
        copy = target / file.path
        copy.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # it went meanwhile
            shutil.copy2(source, copy)
    links = find_links(Path(root)).inside
    reached = {
        link: to for link, to in links.items() if (target / os.path.dirname(link) / to).resolve().exists()
    }
    make_links(target, reached)
