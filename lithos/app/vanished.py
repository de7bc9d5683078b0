"""Giving up files that vanished, with a server or without (lifecycle spec, section 6)."""

from __future__ import annotations

import attrs
import trio
from attrs import frozen

from lithos.actors.blocking import Threads
from lithos.actors.catalogue import Catalogue
from lithos.actors.scan import scan_folder
from lithos.app import running_server
from lithos.app.clock import utc_now
from lithos.config import Config
from lithos.core.plan import VanishRule
from lithos.stores.files import NoteFiles
from lithos.stores.lock import AlreadyOwned, is_owned
from lithos.stores.manifest import Manifest
from lithos.stores.note_lookup import is_there
from lithos.stores.snapshots import snapshot
from lithos.stores.vanished import VanishedFiles

#: Seconds for a server to take an approval: twice what the specification allows.
SERVER_BOUND = 10.0
INDEX_BOUND = 600.0


@frozen
class GivenUp:
    """The files that had vanished; `is_taken` is False when nothing was done about them, or not yet."""

    paths: tuple[str, ...]
    is_taken: bool


async def accept_vanished(config: Config, *, dry_run: bool) -> GivenUp:
    """Drop the entries of vanished files from the indexes, or have the running server do it.

    Raises what `running_server` raises.
    """
    blocking = Threads()
    files = VanishedFiles(config.storage.data_dir / ".lithos")
    lock = config.storage.data_dir / ".lithos" / "lock"
    is_live = await blocking.run(lambda: is_owned(lock))
    paths = await blocking.run(lambda: _list_kept(config, files) if is_live else _list_vanished(config))
    if dry_run or not paths:
        return GivenUp(paths, is_taken=False)
    await blocking.run(lambda: files.approve(paths))
    if not is_live:
        try:
            await _start_once(config)
        except AlreadyOwned:
            pass  # a server that started this moment takes the approval as well
        except BaseException:
            files.settle_approval()
            raise
    return GivenUp(paths, await _is_taken(files, blocking))


async def _start_once(config: Config) -> None:
    """A start takes the approval, tells the deletions and brings the indexes in line."""
    unwatched = attrs.evolve(config, server=attrs.evolve(config.server, watch_files=False))
    async with running_server(unwatched) as server:
        with trio.move_on_after(INDEX_BOUND):
            await server.searchable()


async def _is_taken(files: VanishedFiles, blocking: Threads) -> bool:
    with trio.move_on_after(SERVER_BOUND):
        while await blocking.run(files.is_approval_waiting):  # noqa: ASYNC110 - another process takes it
            await trio.sleep(0.1)
        return True
    return False


def _list_kept(config: Config, vanished: VanishedFiles) -> tuple[str, ...]:
    """What the running server keeps and is still not there."""
    files = NoteFiles(config.storage.data_dir / config.storage.knowledge_subdir)
    return tuple(path for path in sorted(vanished.kept()) if not is_there(files, path))


def _list_vanished(config: Config) -> tuple[str, ...]:
    """What was indexed last and is nowhere now."""
    storage = config.storage
    catalogue = Catalogue()
    with snapshot(storage.data_dir / ".lithos" / "manifest.db", is_live=False) as connection:
        files = NoteFiles(storage.data_dir / storage.knowledge_subdir)
        rule = VanishRule(keep_all=True)
        result = scan_folder(files, Manifest.view(connection), catalogue, (), utc_now(), rule)
    entries = (catalogue.get(note_id) for note_id in result.vanished)
    return tuple(sorted(entry.path for entry in entries if entry is not None))
