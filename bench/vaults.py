"""Vaults of collections: notes and indexes, built once and kept between runs; served in this process."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from attrs import frozen

from bench.judged import Collection
from bench.tiers import search_config, wait_for_tier
from lithos.app import Server, running_server
from lithos.config.catalogue import Config
from lithos.config.sections import LcmaConfig, SearchConfig, ServerConfig, StorageConfig

#: The enrich worker would write entities into the notes some minutes after the start, in the middle of a
#: measurement: it is put off for longer than any lasts.
_NEVER_MINUTES = 100_000.0


def learning_config() -> LcmaConfig:
    """The section `lcma` of a measurement."""
    return LcmaConfig(
        enrich_drain_interval_minutes=_NEVER_MINUTES, sweep_startup_delay_minutes=_NEVER_MINUTES
    )


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
        async with running_server(self._config(aside, None)) as server:
            await wait_for_tier(server, self.tier)
        return aside.rename(built)

    @asynccontextmanager
    async def serving(
        self, collection: Collection, *, search: SearchConfig | None = None
    ) -> AsyncIterator[Server]:
        """A server on a copy of the collection's vault, everything searchable; what it learns is dropped."""
        built = await self.build(collection)
        with tempfile.TemporaryDirectory(prefix="lithos-quality-") as work:
            data = Path(work) / "data"
            shutil.copytree(built, data)
            async with running_server(self._config(data, search)) as server:
                await wait_for_tier(server, self.tier)
                yield server

    def _config(self, data: Path, search: SearchConfig | None) -> Config:
        return Config(
            server=self.server,
            storage=StorageConfig(data_dir=data),
            search=search or search_config(self.tier),
            lcma=learning_config(),
        )


@contextmanager
def vault_folder(kept: Path | None) -> Iterator[Path]:
    """The folder that keeps vaults, or one that goes away."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="lithos-quality-") as folder:
        yield Path(folder)
