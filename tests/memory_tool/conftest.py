"""One server per kind of store and session of a worker. Each test has its own folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lithos.memory_tool import LithosMemory
from tests.memory_tool.backends import BACKENDS, Make, ServedMemory, fresh_folder, served


@pytest.fixture(scope="package")
def data_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMemory]:
    with served(tmp_path_factory.mktemp("data"), vault=False) as server:
        yield server


@pytest.fixture(scope="package")
def vault_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedMemory]:
    with served(tmp_path_factory.mktemp("vault"), vault=True) as server:
        yield server


@pytest.fixture(params=BACKENDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Return a function that makes memory tools with the same, at first empty, memory."""
    if request.param == "folder":
        return lambda: LithosMemory(path=tmp_path / "memories")
    server: ServedMemory = request.getfixturevalue(f"{request.param}_server")
    folder = fresh_folder()
    return lambda: LithosMemory(url=server.url, agent="claude", folder=folder)


@pytest.fixture
def memory(make: Make) -> LithosMemory:
    return make()
