"""External edits while a server runs, with and without the notifications of the operating system."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

import lithos.search.capability
from lithos.app.server import running_server
from lithos.events.journal.broadcaster import Broadcaster, Subscription
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.guard_orders import VanishedFiles
from lithos.notes.settings import IndexConfig
from lithos.notes.state import look_at_watcher
from lithos.notes.watching import notifications, watcher
from lithos.notes.watching.guard import DeletionGuard
from lithos.notes.watching.ingest import Ingest
from lithos.notes.watching.watcher import Watcher
from lithos.notes.writing.actor_writer import Writer
from lithos.search.indexing.indexer import FulltextIndexer
from lithos.server.service_state import ServerState
from lithos.upkeep.maintenance.maintenance import GivenUp, accept_vanished
from tests.kernel.actors.watched import UUID, note
from tests.servers import Lithos, load_once, put_note, refusal, serving, until

#: Maximum seconds until these tests notice a change. `bench.watch` measures the limit of the spec.
PATIENCE = 60.0


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    monkeypatch.setattr(watcher, "TICK", 0.05)
    monkeypatch.setattr(watcher, "RETRY", 0.05)
    monkeypatch.setattr(notifications, "PROBE_PAUSE", 0.02)
    monkeypatch.setattr(notifications, "_SILENCE", 100)


@asynccontextmanager
async def watching(data: Path, mode: str = "native", **index: Any) -> AsyncIterator[Lithos]:
    """Start a server that watches its files, and wait until it has chosen a watch mode."""
    settings = IndexConfig(**{"watch_debounce_ms": 40, "watch_mode": mode, **index})
    async with serving(data, server={"watch_files": True}, index=settings) as lithos:
        await until(lambda: component_status(lithos) != "warming")
        yield lithos


def component_status(lithos: Lithos) -> str:
    return lithos.server.call(look_at_watcher).status


async def told(events: Subscription) -> tuple[str, str]:
    """Wait for the next event, and return its type and path."""
    with trio.fail_after(PATIENCE):
        draft = (await events.events.receive()).draft
    return draft.type, str(draft.payload.get("path") or draft.payload["dest_path"])


async def health(lithos: Lithos) -> tuple[int, dict[str, Any]]:
    status, body = await lithos.server.get(ServerState).report()
    return status, body["components"]


@pytest.mark.parametrize("mode", ["auto", "poll"])
async def test_external_edits_are_searchable_when_their_event_is_sent(tmp_path, mode):
    """behaviours 135, 136 and 137."""
    async with watching(tmp_path, mode) as lithos:
        events = lithos.server.get(Broadcaster).listen()
        assert lithos.server.get(Watcher).mode == ("poll" if mode == "poll" else "native")
        file = put_note(tmp_path, "a.md", note(1, "about zebras"))
        assert await told(events) == ("note.created", "a.md")
        assert await lithos.found("zebras", mode="fulltext") == ["Note 1"]
        file.write_text(note(1, "about giraffes [[Note 1]]"))
        assert await told(events) == ("note.updated", "a.md")
        assert await lithos.found("zebras", mode="fulltext") == []
        assert await lithos.found("giraffes", mode="fulltext") == ["Note 1"]
        (lithos.knowledge / "deep/er").mkdir(parents=True)
        file.rename(lithos.knowledge / "deep/er/b.md")
        assert await told(events) == ("note.renamed", "deep/er/b.md")
        assert (await lithos.call("lithos_read", path="deep/er/b.md"))["id"] == UUID.format(1)
        shutil.rmtree(lithos.knowledge / "deep")
        assert await told(events) == ("note.deleted", "deep/er/b.md")
        refusal(await lithos.call("lithos_read", id=UUID.format(1)), "doc_not_found")
        assert lithos.files() == []


async def test_watcher_polls_with_a_warning_when_notifications_are_missing(tmp_path, monkeypatch):
    """behaviour 199"""

    def blind(*_: object, stop_event: Any, **__: object):
        while not stop_event.wait(0.02):
            yield set()

    monkeypatch.setattr(notifications.watchfiles, "watch", blind)
    monkeypatch.setattr(notifications, "PROBE_BOUND", 0.2)
    async with watching(tmp_path, "auto") as lithos:
        events = lithos.server.get(Broadcaster).listen()
        _, components = await health(lithos)
        assert components["watcher"] == {"status": "ok", "mode": "poll"}
        put_note(tmp_path, "a.md", note(1))
        assert await told(events) == ("note.created", "a.md")
        assert lithos.files() == ["a.md"], "the probe is gone"


async def test_external_edits_are_not_noticed_when_watching_is_off(tmp_path):
    async with serving(tmp_path) as lithos:
        put_note(tmp_path, "a.md", note(1))
        _, components = await health(lithos)
        assert components["watcher"] == {"status": "ok", "mode": "off"}
        assert lithos.server.get(Watcher)._pending.due == float("inf")


async def test_ten_thousand_touched_files_cause_no_events_and_few_reads(tmp_path):
    put_note(tmp_path, "a.md", note(1))
    async with watching(tmp_path) as lithos:
        events = lithos.server.get(Broadcaster).listen()
        before = lithos.server.get(Writer).mailbox.stats.handled
        began = time.monotonic_ns()

        def touch() -> None:
            for n in range(10_000):
                os.utime(tmp_path / "knowledge/a.md", ns=(began + n, began + n))

        await trio.to_thread.run_sync(touch)
        put_note(tmp_path, "b.md", note(2))
        assert await told(events) == ("note.created", "b.md")
        assert lithos.server.get(Writer).mailbox.stats.handled - before < 200


@pytest.mark.parametrize("mode", ["auto", "native"])
async def test_exhausted_watches_cause_tree_comparison_and_a_health_warning(tmp_path, monkeypatch, mode):
    """behaviour 199: the system watches only one folder and does not report this."""

    def watch_one(root: str, **options: Any):
        return one_folder(root, recursive=False, **options)

    one_folder = notifications.watchfiles.watch
    monkeypatch.setattr(notifications.watchfiles, "watch", watch_one)
    (tmp_path / "knowledge/deep/er").mkdir(parents=True)
    async with watching(tmp_path, mode) as lithos:
        events = lithos.server.get(Broadcaster).listen()
        if mode == "auto":
            await until(lambda: lithos.server.get(Watcher).mode == "poll")
            assert (await health(lithos))[1]["watcher"] == {"status": "ok", "mode": "poll"}
        else:
            await until(lambda: component_status(lithos) == "degraded")
            assert "fs.inotify.max_user_watches" in str((await health(lithos))[1]["watcher"]["error"])
        file = put_note(tmp_path, "deep/er/a.md", note(1))
        assert await told(events) == ("note.created", "deep/er/a.md")
        file.write_text(note(1, "edited"))
        assert await told(events) == ("note.updated", "deep/er/a.md")


async def test_file_name_that_is_not_text_does_not_stop_watching(tmp_path, caplog):
    async with watching(tmp_path) as lithos:
        events = lithos.server.get(Broadcaster).listen()
        os.close(os.open(os.fsencode(lithos.knowledge) + b"/\xff.md", os.O_CREAT | os.O_WRONLY))
        await until(lambda: "watcher failing" in caplog.text)
        put_note(tmp_path, "a.md", note(1))
        assert await told(events) == ("note.created", "a.md")
        await until(lambda: component_status(lithos) == "ok")


async def test_watcher_polls_when_listening_keeps_failing(tmp_path):
    """behaviour 199: for example, the name of a folder is not text."""
    async with watching(tmp_path, "auto") as lithos:
        events = lithos.server.get(Broadcaster).listen()
        folder = os.fsencode(lithos.knowledge) + b"/\xff\xfe"
        os.mkdir(folder)
        number = 0
        with trio.fail_after(PATIENCE):
            while lithos.server.get(Watcher).mode != "poll":
                number += 1
                os.close(os.open(folder + b"/%d" % number, os.O_CREAT | os.O_WRONLY))
                await trio.sleep(0.02)
        assert component_status(lithos) == "ok"
        put_note(tmp_path, "a.md", note(1))
        assert await told(events) == ("note.created", "a.md")


async def test_watcher_survives_an_internal_error(tmp_path, monkeypatch):
    settle, bugs = Ingest.settle, [RuntimeError("a bug")]

    async def settle_with_a_bug(self, noticed):
        if bugs:
            raise bugs.pop()
        await settle(self, noticed)

    async with watching(tmp_path) as lithos:
        monkeypatch.setattr(Ingest, "settle", settle_with_a_bug)
        events = lithos.server.get(Broadcaster).listen()
        put_note(tmp_path, "a.md", note(1))
        assert await told(events) == ("note.created", "a.md")
        await until(lambda: lithos.server.get(Watcher).mailbox.stats.restarts == 1)
        put_note(tmp_path, "b.md", note(2))
        assert await told(events) == ("note.created", "b.md")


async def test_folder_that_reappears_is_watched_again(tmp_path):
    """behaviour 198"""
    put_note(tmp_path, "a.md", note(1))
    async with watching(tmp_path) as lithos:
        events = lithos.server.get(Broadcaster).listen()
        lithos.knowledge.rename(tmp_path / "away")
        await until(lambda: lithos.server.get(DeletionGuard).vanished == 1)
        status, components = await health(lithos)
        assert (status, components["index"]["status"], components["index"]["vanished"]) == (
            503,
            "degraded",
            1,
        )
        assert components["watcher"]["status"] == "degraded"
        refusal(await lithos.call("lithos_read", id=UUID.format(1)), "doc_not_found")
        (tmp_path / "away").rename(lithos.knowledge)
        await until(lambda: lithos.server.get(DeletionGuard).vanished == 0)
        await lithos.read(UUID.format(1))
        await until(lambda: component_status(lithos) == "ok")
        put_note(tmp_path, "b.md", note(2))
        assert await told(events) == ("note.created", "b.md")
        assert (await health(lithos))[1]["index"]["status"] == "ok"


async def test_approval_deletes_exactly_the_listed_notes(tmp_path):
    """behaviour 198"""
    for n in range(30):
        put_note(tmp_path, f"{n}.md", note(n, "about zebras"))
    # Use a longer quiet period: on a busy machine, the first of twenty deletions would be processed before
    # the last.
    async with watching(tmp_path, watch_debounce_ms=500) as lithos:
        for n in range(20):
            (lithos.knowledge / f"{n}.md").unlink()
        await until(lambda: lithos.server.get(DeletionGuard).vanished == 20)
        assert len(lithos.server.get(Catalogue)) == 30
        approvals = VanishedFiles(tmp_path / ".lithos")
        approvals.approve([f"{n}.md" for n in range(1, 30)])
        await until(lambda: not approvals.is_approval_waiting())
        assert (len(lithos.server.get(Catalogue)), lithos.server.get(DeletionGuard).vanished) == (11, 1)
        assert approvals.kept() == {"0.md"}
        put_note(tmp_path, "0.md", note(0, "about zebras"))
        await until(lambda: lithos.server.get(DeletionGuard).vanished == 0 and not approvals.kept())
        await lithos.server.get(FulltextIndexer).converged()
        assert (await health(lithos))[1]["index"]["status"] == "ok"


@pytest.mark.parametrize("watches", [True, False])
async def test_start_with_an_empty_mount_keeps_all_notes(tmp_path, watches):
    """behaviour 198, with and without the watcher."""
    for n in range(30):
        put_note(tmp_path, f"{n}.md", note(n, f"about zebra{n}"))
    async with serving(tmp_path):
        pass
    (tmp_path / "knowledge").rename(tmp_path / "away")
    async with serving(tmp_path, server={"watch_files": watches}) as lithos:
        assert lithos.events() == []
        status, components = await health(lithos)
        assert (status, components["index"]["vanished"]) == (200, 30)
        assert "reconcile --accept-vanished" in components["index"]["error"]
        assert components["knowledge_base"]["documents"] == 30
        answer = await lithos.call("lithos_read", id=UUID.format(3))
        assert "3.md" in refusal(answer, "doc_not_found")
        for file in (tmp_path / "away").iterdir():
            file.rename(lithos.knowledge / file.name)
        await until(lambda: lithos.server.get(DeletionGuard).vanished == 0)
        assert await lithos.found("zebra3", mode="fulltext") == ["Note 3"]
        assert lithos.events() == []


async def test_loss_of_notes_can_be_approved_without_a_running_server(tmp_path, monkeypatch):
    """behaviour 198"""
    monkeypatch.setattr(lithos.search.capability, "load_embedder", load_once)
    for n in range(30):
        put_note(tmp_path, f"{n}.md", note(n))
    async with serving(tmp_path):
        pass
    for n in range(1, 30):
        (tmp_path / f"knowledge/{n}.md").unlink()
    (tmp_path / "knowledge/0.md").rename(tmp_path / "knowledge/moved.md")
    config = Config(storage=StorageConfig(data_dir=tmp_path))
    listed = await accept_vanished(config, running_server, dry_run=True)
    assert listed == GivenUp(tuple(sorted(f"{n}.md" for n in range(1, 30))), is_taken=False)
    assert await accept_vanished(config, running_server, dry_run=False) == GivenUp(
        listed.paths, is_taken=True
    )
    async with serving(tmp_path) as server:
        assert [entry.path for entry in server.server.get(Catalogue)] == ["moved.md"]
        assert server.server.get(DeletionGuard).vanished == 0
    assert (await accept_vanished(config, running_server, dry_run=False)).paths == ()


async def test_stopped_watcher_leaves_no_probe_file_or_thread(tmp_path):
    async with watching(tmp_path, "auto"):
        pass
    async with watching(tmp_path, "auto"):
        pass
    assert list((tmp_path / "knowledge").iterdir()) == []


async def test_vault_behind_a_symlink_is_watched(tmp_path):
    (tmp_path / "vault").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/knowledge").symlink_to(tmp_path / "vault")
    async with watching(tmp_path / "data", "auto") as server:
        assert server.server.get(Watcher).mode == "native"
        events = server.server.get(Broadcaster).listen()
        (tmp_path / "vault/a.md").write_text(note(1))
        assert await told(events) == ("note.created", "a.md")
