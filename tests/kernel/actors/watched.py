"""A house whose files are changed by other programs. The watcher processes the changes on demand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from lithos.kernel.actors.threads import Inline
from lithos.notes.files.guard_orders import VanishedFiles
from lithos.notes.watching.debounce import Pending, TouchedBatch
from lithos.notes.watching.guard import DeletionGuard
from lithos.notes.watching.ingest import Ingest
from lithos.notes.writing.messages import WriteOutcome
from tests.fakes import put_file
from tests.kernel.actors.house import House

UUID = "11111111-1111-4111-8111-{:012}"


def note(n: int, body: str = "", **keys: str) -> str:
    """Return a note file with an id."""
    lines = "".join(f"{key}: {value}\n" for key, value in keys.items())
    return f"---\nid: {UUID.format(n)}\n{lines}---\n\n# Note {n}\n\n{body or f'body of {n}'}\n"


class WatchedHouse(House):
    """A house with a watcher. `settle_paths` and `compare` replace one watcher batch without debounce."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.counted: list[str] = []
        self.vanished = VanishedFiles(root)
        self.make_watcher()

    def make_watcher(self) -> None:
        self.pending = Pending(0.0)
        self.guard = DeletionGuard(self.catalogue, self.files, self.vanished, Inline())
        self.taking = Ingest(self.guard, self.writer.mailbox, self.pending, self.counted.append)

    @property
    def folder(self) -> Path:
        return self.files.root

    def put(self, path: str, text: str) -> None:
        put_file(self.files, path, text)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Scan the existing files, and then run the actors.

        On exit, all changes are indexed, journalled and in the manifest.
        """
        self.settle(self.scan())
        async with self.running():
            for indexer in self.indexers:
                await indexer.converged()
            yield

    @asynccontextmanager
    async def with_note(self, content: str = "text", **fields: Any) -> AsyncIterator[WriteOutcome]:
        """Run the actors with a note called `Note`. Yield the outcome of its creation."""
        async with self.watching():
            yield await self.create("Note", content, **fields)

    async def settle_paths(self, *paths: str) -> None:
        """Process one batch with these changed paths."""
        now = trio.current_time()
        await self.taking.settle(TouchedBatch(dict.fromkeys(paths, now), False))

    async def compare(self) -> None:
        """Run one comparison of the whole folder, without known paths.

        Paths that an earlier run marked for another check are included.
        """
        await self.taking.settle(TouchedBatch(self.pending.take().touched, True))

    def path_of(self, n: int) -> str | None:
        entry = self.catalogue.get(UUID.format(n))
        return entry.path if entry else None
