"""Vaults made from collections. Their notes and indexes are kept between runs and served in this process."""

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

#: Minutes after the start, the enrichment worker would write entities into the notes, during a measurement.
#: This interval postpones the worker beyond any measurement.
_QUIET = LcmaConfig(enrich_drain_interval_minutes=100_000.0, sweep_startup_delay_minutes=100_000.0)


#: Search settings by the name of a tier. The accurate tier has two models.
TIERS = {
    "static": SearchConfig(tier="static"),
    "accurate": SearchConfig(tier="accurate", accurate_model="english"),
    "accurate-multi": SearchConfig(tier="accurate", accurate_model="multilingual"),
}

#: Maximum seconds until all chunks of a collection have vectors, and seconds between two checks.
PATIENCE, CHECK = 3_600.0, 0.5


async def wait_for_tier(server: Server, tier: str) -> None:
    """Wait until `/health` reports that the tier is used. Raises `TimeoutError` after `PATIENCE` seconds."""
    await server.searchable()
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        _, body = await server.get(ServerState).report()
        component = body["components"]["embedding_model"]
        told = {**component, **component.get("details", {})}
        if told.get("tier", tier) == (tier if tier == "static" else "accurate"):
            return
        await trio.sleep(CHECK)
    raise TimeoutError(f"the tier {tier} is not in use after {PATIENCE:.0f} s")


@frozen
class Vaults:
    """A builder and server of vaults.

    `folder` stores the vaults, `tier` names the embedding model, and `server` contains the server settings.
    """

    folder: Path
    tier: str = "static"
    server: ServerConfig = ServerConfig()

    async def build(self, collection: Collection) -> Path:
        """Return the data directory of a collection. If an earlier run has built it, it is reused.

        The directory is built under another name, so that an incomplete directory is never used.
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
        """Serve a copy of the collection's vault. All notes are searchable, and learned data is discarded."""
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
            search=TIERS[self.tier],
            lcma=_QUIET,
        )


@contextmanager
def vault_folder(kept: Path | None) -> Iterator[Path]:
    """Yield the folder that stores vaults. By default, yield a temporary folder."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="lithos-quality-") as folder:
        yield Path(folder)
