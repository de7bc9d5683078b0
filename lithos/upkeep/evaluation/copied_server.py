"""A server that runs on a copy of a data directory and answers questions. The original is not changed.

A server writes from its start (lock, ids, retrieval statistics). The notes, the learned data and the indexes
are therefore copied to a temporary directory. File times are preserved, so that indexed notes are not indexed
again. The server calls no language model and stores no history.
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
#: Databases that contain the names of notes, the learned data and the state of the indexes.
_DATABASES: Final = ("edges.db", "stats.db", "coordination.db", "manifest.db")
_INDEXES: Final = (".tantivy", ".usearch")
#: Maximum seconds to wait until the indexes are ready.
READY_WAIT: Final = 600.0


@asynccontextmanager
async def rehearsal_server(config: Config, run_server: RunServer) -> AsyncIterator[Parts]:
    """Run a server on a temporary copy. When the block starts, all notes can be searched.

    No other process may own the data directory. Raises the errors of `run_server`, and `FileNotFoundError` if
    the notes folder does not exist.
    """
    stop = threading.Event()
    # An abandoned copy thread may still write a file while the folder is being removed.
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
    """Ask questions on a server that runs on a copy.

    Raises `AskingFailed` and the errors of `rehearsal_server`.

    `AskingFailed` is raised after the server has stopped, so that it is not wrapped in an exception group.
    """
    async with rehearsal_server(config, run_server) as server:
        try:
            return await ask(server.get(Tools))
        except AskingFailed as problem:
            failure = problem
    raise failure


def copy_for_reading(config: Config, folder: Path, stop: threading.Event) -> Config:
    """Copy all searchable data to `folder`, and return the configuration of the copy. Blocks.

    Set `stop` to end the copying if the caller no longer waits.
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
        with suppress(FileNotFoundError):  # the index may not exist yet
            shutil.copytree(storage.data_dir / name, data / name, symlinks=True)
    return config.replace(
        attrs.evolve(config.of(ServerConfig), watch_files=False, max_answer_chars=0),
        attrs.evolve(storage, data_dir=data, vault=notes if is_vault else None),
        attrs.evolve(config.of(HistoryConfig), enabled=False),
    )


def _copy_notes(config: Config, target: Path, stop: threading.Event) -> None:
    """Copy the note files under their names, and the symbolic links to these files."""
    root = os.path.realpath(config.of(StorageConfig).notes_folder)
    files = open_notes(config.of(StorageConfig))
    for file in files.list_notes():
        source = files.real_place(file.path)[1]
        if stop.is_set():
            return
        if os.path.realpath(source) != source:
            continue
        copy = target / file.path
        copy.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # the note was deleted meanwhile
            shutil.copy2(source, copy)
    links = find_links(Path(root)).inside
    reached = {
        link: to for link, to in links.items() if (target / os.path.dirname(link) / to).resolve().exists()
    }
    make_links(target, reached)
