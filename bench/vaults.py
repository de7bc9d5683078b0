"""Vaults of collections: notes and indexes, built once and kept between runs; served in this process."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import trio
from attrs import frozen

from bench.judged import Collection
from lithos.app.server import Server, running_server
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.memory.settings import LcmaConfig
from lithos.search.settings import SearchConfig
from lithos.server.service_state import ServerState
from lithos.server.settings import ServerConfig

#: The enrich worker would write entities into the notes some minutes after the start, in the middle of a
#: measurement: it is put off for longer than any lasts.
_QUIET = LcmaConfig(enrich_drain_interval_minutes=100_000.0, sweep_startup_delay_minutes=100_000.0)


#: Seconds for all chunks of a collection to get their vectors, and between two checks.
PATIENCE, CHECK = 3_600.0, 0.5


async def wait_for_tier(server: Server, tier: str) -> None:
    """Return once `/health` says that the tier answers. Raises `TimeoutError` after `PATIENCE`."""
    await server.searchable()
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        _, body = await server.get(ServerState).report()
        component = body["components"]["embedding_model"]
        if {**component, **component.get("details", {})}.get("tier", tier) == tier:
            return
        await trio.sleep(CHECK)
    raise TimeoutError(f"the tier {tier} is not in use after {PATIENCE:.0f} s")


@frozen
class Vaults:
    """Builds and serves vaults; `folder` keeps them, `tier` names the embeddings, `server` holds settings."""

    folder: Path
    tier: str = "static"
    server: ServerConfig = ServerConfig()

    async def build(self, collection: Collection) -> Path:
        """The data directory of a collection, from the last run if there is one.

        It is built aside, so that half of it never counts.
        """
        built = self.folder / f"{collection.name}-{collection.fingerprint()}-{self.tier}"
        if built.exists():
            return built
        aside = built.with_suffix(".part")
        shutil.rmtree(aside, ignore_errors=True)
        collection.write_notes(aside / "knowledge")
        async with running_server(self._config(aside)) as server:
            await wait_for_tier(server, self.tier)
        return aside.rename(built)

    @asynccontextmanager
    async def serving(self, collection: Collection, *, learns_by_use: bool = True) -> AsyncIterator[Server]:
        """A server on a copy of the collection's vault, all searchable; data that it learns is dropped."""
        built = await self.build(collection)
        with tempfile.TemporaryDirectory(prefix="lithos-quality-") as work:
            data = Path(work) / "data"
            shutil.copytree(built, data)
            async with running_server(self._config(data)) as server:
                await wait_for_tier(server, self.tier)
                yield server

    def _config(self, data: Path) -> Config:
        return Config(
            server=self.server,
            storage=StorageConfig(data_dir=data),
            search=SearchConfig(tier=self.tier),
            lcma=_QUIET,
        )


@contextmanager
def vault_folder(kept: Path | None) -> Iterator[Path]:
    """The folder that keeps vaults, or a temporary one."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="lithos-quality-") as folder:
        yield Path(folder)
