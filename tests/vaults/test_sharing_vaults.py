"""Vaults of one process, which share the models. Log lines name the vault."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

import lithos.search.capability
from lithos.app.capabilities import holders
from lithos.app.front import front_parts
from lithos.app.server import running_vault
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.configuration.load import LoadedConfig
from lithos.kernel.log import configure_logging
from lithos.kernel.settings import StorageConfig
from lithos.search.indexing.semantic import SemanticBackend
from lithos.search.settings import SearchConfig
from lithos.search.whole_index import WholeIndex
from lithos.server.settings import ServerConfig
from lithos.vaults.hosted import Starting
from lithos.vaults.hosting import Vaults, serve_vaults
from tests.server.running import SETTINGS
from tests.servers import load_once

NAMES = ("work", "home", "club")


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Capture the log lines as JSON."""
    root, stream = logging.getLogger(), io.StringIO()
    before = root.level, list(root.handlers)
    configure_logging("info", "json", stream)
    yield stream
    logging.captureWarnings(False)
    root.level, root.handlers[:] = before


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Vaults]:
    """Serve three searchable vaults in one process with static embeddings only."""
    named = {
        name: LoadedConfig(
            config=Config(
                storage=StorageConfig(data_dir=folder / name),
                server=ServerConfig(watch_files=False),
                search=SearchConfig(tier="static"),
            )
        )
        for name in NAMES
    }
    starting = Starting(running_vault, front_parts, holders())
    vaults, shutdown = Vaults(named, NAMES[0], starting), trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(serve_vaults, vaults, SETTINGS, shutdown, lambda host, port: ""))
        with trio.fail_after(60):
            for each in vaults.hosted.values():
                while each.server is None:
                    await trio.sleep(0.01)
                await each.server.get(WholeIndex).complete()
        yield vaults
        shutdown.set()


async def test_vaults_share_one_model_and_log_under_their_own_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: io.StringIO
) -> None:
    loads: list[str] = []

    def load(name: str) -> Any:
        loads.append(name)
        return load_once(name)

    monkeypatch.setattr(lithos.search.capability, "load_embedder", load)
    async with served(tmp_path) as vaults:
        embedders = set()
        for each in vaults.hosted.values():
            assert each.server is not None
            target = each.server.get(SemanticBackend).port.target
            assert target is not None
            embedders.add(id(target.embedder))
    assert loads == ["builtin"]
    assert len(embedders) == 1
    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    for event in ("ready", "stopped"):
        assert sorted(line["vault"] for line in told if line["message"] == event) == sorted(NAMES)
