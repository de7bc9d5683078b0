"""`/health`: the report of each component when it works and when it fails."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import apsw
import pytest
import trio

import lithos.memory.learning.actor
from lithos.events.journal.coordinator import Coordinator
from lithos.kernel.databases.sqlite import DatabaseFailed
from lithos.memory.retrieve.feedback import Learning
from lithos.search.indexing.indexer import FulltextIndexer
from lithos.server.service_state import ServerState
from tests.e2e.faults.injection import failing_fsync, faulty_disk
from tests.servers import refusal, serving

COMPONENTS = [
    "kb_directory",
    "knowledge_base",
    "search",
    "embedding_model",
    "index",
    "watcher",
    "events",
    "coordination",
    "memory",
    "history",
    "ownership",
]


async def test_health_reports_the_state_of_each_component(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 139."""

    def fail(*_: object) -> None:
        raise DatabaseFailed("disk I/O error")

    async with serving(tmp_path) as lithos:
        await lithos.create("Alpha")
        status, body = await lithos.server.get(ServerState).report()
        assert (status, body["status"]) == (200, "ok")
        assert list(body) == ["status", "timestamp", "version", "components"]
        assert list(body["components"]) == COMPONENTS
        assert {part["status"] for part in body["components"].values()} == {"ok"}
        assert body["components"]["knowledge_base"]["documents"] == 1
        assert body["components"]["events"]["head"] == lithos.server.get(Coordinator).head
        # A server without its notes folder is unavailable.
        shutil.rmtree(lithos.knowledge)
        status, body = await lithos.server.get(ServerState).report()
        assert (status, body["status"]) == (503, "degraded")
        assert body["components"]["kb_directory"]["status"] == "unavailable"
        assert str(lithos.knowledge) in body["components"]["kb_directory"]["error"]
        lithos.knowledge.mkdir()
        status, body = await lithos.server.get(ServerState).report()
        assert (status, body["status"]) == (200, "ok")
        # A server whose search index fails is degraded but answers.
        lithos.server.get(FulltextIndexer).failure = "no space left on device"
        status, body = await lithos.server.get(ServerState).report()
        assert (status, body["status"]) == (200, "degraded")
        assert body["components"]["search"] == {"status": "degraded", "error": "no space left on device"}
        # A server whose database does not answer is unavailable.
        monkeypatch.setattr("lithos.events.rows.store.CoordinationStore.counts", fail)
        status, body = await lithos.server.get(ServerState).report()
        assert (status, body["status"]) == (503, "degraded")
        assert "disk I/O error" in body["components"]["coordination"]["error"]


async def test_unwritable_notes_folder_is_reported_until_it_is_writable(tmp_path: Path) -> None:
    """Behaviours 127, 139: the health check does not change anything."""
    async with serving(tmp_path) as lithos:
        note = await lithos.create("Kept", "before")
        events = lithos.events()
        with failing_fsync(errno.ENOSPC):
            for target in ({"title": "Lost"}, {"title": "Kept", "id": note}):
                answer = await lithos.call("lithos_write", content="x", agent="a", **target)
                assert os.strerror(errno.ENOSPC) in refusal(answer, "internal_error")
            status, body = await lithos.server.get(ServerState).report()
            assert (status, body["status"]) == (200, "degraded")
            assert os.strerror(errno.ENOSPC) in body["components"]["kb_directory"]["error"]
        status, body = await lithos.server.get(ServerState).report()
        assert (status, body["status"]) == (200, "ok")
        assert (lithos.files(), lithos.events()) == (["kept.md"], events)
        assert (await lithos.read(note))["version"] == 1
        await lithos.create("Lost")


async def test_unwritable_memory_is_reported_and_recovers_on_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 139."""
    monkeypatch.setattr(lithos.memory.learning.actor, "RETRY_DELAY", 0.01)
    with faulty_disk() as disk:
        async with serving(tmp_path, settled=False) as server:
            with disk.refusing("stats.db", apsw.FullError):
                await server.call("lithos_retrieve", query="anything")
                for _ in range(2):
                    tried = disk.refused
                    while disk.refused == tried:  # Wait until the server retries on its own.
                        await trio.sleep(0.005)
                    status, body = await server.server.get(ServerState).report()
                    assert (status, body["components"]["memory"]["status"]) == (200, "degraded")
                    assert "stats.db cannot be written (injected)" in body["components"]["memory"]["error"]
                    assert "edges.db" not in body["components"]["memory"]["error"]
            while (await server.server.get(ServerState).report())[1]["components"]["memory"][
                "status"
            ] != "ok":
                await trio.sleep(0.005)


async def test_database_damage_during_use_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behaviour 139."""

    def meet_damage(*_: object) -> None:
        raise apsw.CorruptError("database disk image is malformed")

    async with serving(tmp_path, settled=False) as server:
        await server.call("lithos_retrieve", query="anything")
        monkeypatch.setattr("lithos.memory.rows.stats.NodeRows.get", meet_damage)
        with pytest.raises(DatabaseFailed):
            await server.server.get(Learning).stats(["n"])
        status, body = await server.server.get(ServerState).report()
        assert (status, body["components"]["memory"]["status"]) == (200, "degraded")
        assert "Restart the server" in body["components"]["memory"]["error"]
