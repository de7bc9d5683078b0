"""Vault that is served in place: notes, files that Lithos writes, first starts, errors, and backups."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

import lithos.notes.catalogue.scan
from lithos.app.server import Server, running_server
from lithos.kernel.actors import start_progress
from lithos.kernel.actors.front_signals import FrontSignals
from lithos.kernel.actors.start_progress import Opening
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.files.files import NoteFiles
from lithos.notes.files.system_calls import KernelCalls
from lithos.notes.opening import open_notes
from lithos.notes.watching.guard import DeletionGuard
from lithos.notes.watching.watcher import Watcher
from lithos.search.settings import SearchConfig
from lithos.server.service_state import ServerState
from lithos.server.settings import ServerConfig
from lithos.upkeep.checks.validation import validate_notes
from lithos.upkeep.files.backup import BackupRefused
from lithos.upkeep.maintenance.backup import back_up, restore
from lithos.upkeep.maintenance.doctor import examine_all, make_patient
from tests.servers import refusal, serving


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Create a vault with some notes and other files."""
    folder = tmp_path / "vault"
    for path, text in {
        "Zanzibar.md": "# Spices\n\nCloves come from here.",
        "deep/er/Mombasa.md": "A harbour [[Zanzibar]].",
        "templates/Daily.md": "zanzibar template",
        "Old/Gone.md": "zanzibar of old",
        ".obsidian/app.json": json.dumps({"userIgnoreFilters": ["Old/"]}),
        ".trash/Bin.md": "zanzibar in the bin",
        "image.png": "no note",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture(autouse=True)
def _state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def everything(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    told = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return told.stdout


def storage(tmp_path: Path, vault: Path, **settings: Any) -> StorageConfig:
    return StorageConfig(data_dir=tmp_path / "data", vault=vault, **settings)


def config(tmp_path: Path, vault: Path, *, watch: bool = False) -> Config:
    return Config(
        storage=storage(tmp_path, vault),
        server=ServerConfig(watch_files=watch),
        search=SearchConfig(tier="static"),
    )


async def test_git_status_is_clean_after_start_searches_and_stop(tmp_path: Path, vault: Path) -> None:
    """Behaviour 249: Lithos creates nothing in the vault, even with the watcher on."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    git(vault, "init", "-q")
    git(vault, "add", "-A", "-f")
    git(vault, "commit", "-qm", "all")
    before = everything(vault)
    folders = {vault: vault.stat().st_mtime_ns, vault / "deep": (vault / "deep").stat().st_mtime_ns}
    async with serving(tmp_path / "data", storage={"vault": vault}, server={"watch_files": True}) as lithos:
        for number in range(200):
            await lithos.call("lithos_search", query=f"zanzibar {number}")
        await lithos.call("lithos_read", path="Zanzibar.md")
        await lithos.server.get(ServerState).report()
        assert lithos.server.get(Watcher).mode in ("native", "poll")
        # A temporary file would have changed the modification time of its folder.
        assert {folder: folder.stat().st_mtime_ns for folder in folders} == folders
    assert git(vault, "status", "--porcelain", "--ignored") == ""
    assert everything(vault) == before
    assert not (tmp_path / "data" / "knowledge").exists()


async def test_files_other_than_notes_are_not_shown(tmp_path: Path, vault: Path) -> None:
    """Covers dot-folders, ignored files, templates and attachments.

    Checks scan, search, read, validate and backup.
    """
    async with serving(tmp_path / "data", storage={"vault": vault}) as lithos:
        listed = await lithos.call("lithos_list")
        assert {row["path"] for row in listed["items"]} == {"Zanzibar.md", "deep/er/Mombasa.md"}
        found = await lithos.call("lithos_search", query="zanzibar", mode="fulltext")
        assert {row["path"] for row in found["results"]} <= {"Zanzibar.md", "deep/er/Mombasa.md"}
        refusal(await lithos.call("lithos_read", path="Old/Gone.md"), "doc_not_found")
    files = open_notes(storage(tmp_path, vault))
    assert {file.path for file in validate_notes(files).folder.files} == {"Zanzibar.md", "deep/er/Mombasa.md"}
    index = back_up(config(tmp_path, vault), tmp_path / "backup")
    assert {name for name in index.files if name.endswith(".md")} == {
        "vault/Zanzibar.md",
        "vault/deep/er/Mombasa.md",
    }


@pytest.mark.parametrize("folder", ["templates", "Old/sub"])
async def test_note_at_an_ignored_path_is_refused(folder: str, tmp_path: Path, vault: Path) -> None:
    async with serving(tmp_path / "data", storage={"vault": vault}) as lithos:
        answer = await lithos.call("lithos_write", title="New", content="text", agent="a", path=folder)
        assert "ignored" in refusal(answer, "invalid_input")
    assert not (vault / folder / "new.md").exists()


async def test_watcher_skips_ignored_files(tmp_path: Path, vault: Path) -> None:
    settings = {"watch_files": True}
    async with serving(tmp_path / "data", storage={"vault": vault}, server=settings) as lithos:
        (vault / "Old" / "Late.md").write_text("late zanzibar")
        (vault / "templates" / "Late.md").write_text("late zanzibar")
        (vault / "Late.md").write_text("late zanzibar")
        with trio.fail_after(60):
            while "Late.md" not in await paths_of(lithos.server):
                await trio.sleep(0.05)
        assert await paths_of(lithos.server) == {"Zanzibar.md", "deep/er/Mombasa.md", "Late.md"}


async def test_templates_setting_applies_while_the_server_runs(tmp_path: Path, vault: Path) -> None:
    """behaviour 380: files become templates and turn back into notes, also in large numbers.

    No file changes.
    """
    for number in range(30):
        path = vault / "Vorlagen" / f"n{number}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"text {number}")
    setting = vault / ".obsidian" / "plugins" / "templater-obsidian" / "data.json"
    setting.parent.mkdir(parents=True)
    async with serving(tmp_path / "data", storage={"vault": vault}, server={"watch_files": True}) as lithos:
        assert len(await paths_of(lithos.server)) == 2 + 30
        for folder, count in (("Vorlagen", 0), ("elsewhere", 30)):
            setting.write_text(json.dumps({"templates_folder": folder}))
            with trio.fail_after(60):
                while len(await paths_of(lithos.server)) != 2 + count:
                    await trio.sleep(0.05)
    assert len(list((vault / "Vorlagen").iterdir())) == 30


async def paths_of(server: Server) -> set[str]:
    await trio.lowlevel.checkpoint()
    return {entry.path for entry in server.get(Catalogue)}


async def test_deletion_guard_does_not_stop_a_new_ignore_rule(tmp_path: Path, vault: Path) -> None:
    """A new ignore rule may hide most notes of a large vault, although no file has vanished."""
    for number in range(30):
        (vault / f"n{number}.md").write_text(f"text {number}")
    async with serving(tmp_path / "data", storage={"vault": vault}):
        pass
    async with serving(tmp_path / "data", storage={"vault": vault, "ignore": ("n*.md",)}) as lithos:
        assert lithos.server.get(DeletionGuard).vanished == 0
        assert {row["path"] for row in (await lithos.call("lithos_list"))["items"]} == {
            "Zanzibar.md",
            "deep/er/Mombasa.md",
            "templates/Daily.md",
        }


async def test_write_adds_only_the_note_to_the_vault(tmp_path: Path, vault: Path) -> None:
    before = set(everything(vault))
    async with serving(tmp_path / "data", storage={"vault": vault}) as lithos:
        made = await lithos.call("lithos_write", title="New", content="text", agent="a", path="deep")
        assert made["status"] == "created"
    assert set(everything(vault)) == before | {made["path"]}


class ReadOnly(KernelCalls):
    """System calls that behave as on a read-only mount."""

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        return super().open(path, flags, mode)


async def test_read_only_vault_is_readable_and_write_errors_say_why(
    tmp_path: Path, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = NoteFiles.__init__

    def init(self: NoteFiles, root: Path, **settings: Any) -> None:
        made(self, root, ReadOnly(), **settings)

    monkeypatch.setattr(NoteFiles, "__init__", init)
    async with serving(tmp_path / "data", storage={"vault": vault}) as lithos:
        read = await lithos.call("lithos_read", path="Zanzibar.md")
        assert "Cloves" in read["content"]
        assert (await lithos.call("lithos_search", query="cloves"))["results"]
        answer = await lithos.call("lithos_write", title="New", content="text", agent="a")
        assert "Read-only file system" in refusal(answer, "internal_error")


@asynccontextmanager
async def fronted(settings: Config) -> AsyncIterator[Server]:
    """Yield a server that already listens but has not read its large vault."""
    async with running_server(settings, gets_front=True) as server:
        yield server


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Let every start count as long. The read of the second file waits for the event."""
    go = threading.Event()
    real, seen = lithos.notes.catalogue.scan.examine, []

    def examine(*arguments: Any) -> Any:
        seen.append(arguments[1].path)
        if len(seen) == 2:
            go.wait(30)
        return real(*arguments)

    monkeypatch.setattr(lithos.notes.catalogue.scan, "examine", examine)
    monkeypatch.setattr(start_progress, "MANY", 0)
    yield go
    go.set()


async def test_server_answers_before_its_first_start_has_read_the_notes(
    tmp_path: Path, vault: Path, slow: threading.Event
) -> None:
    """Behaviours 250, 385: reads by path work.

    Answers report the progress of the first scan, and writes wait for it.
    """
    async with fronted(config(tmp_path, vault)) as server, trio.open_nursery() as nursery:
        server.get(FrontSignals).loaded.set()
        assert server.tools.listed()
        found = await server.tools.call("lithos_search", {"query": "cloves"})
        assert found is not None
        assert found["degraded"] is True
        assert found["indexing"] == {"done": 0, "total": 2}
        assert "0 of 2 can be searched so far" in found["message"]
        for tool, more in {
            "lithos_list": {}, "lithos_retrieve": {"query": "cloves"}, "lithos_context": {"query": "cloves"},
            "lithos_cache_lookup": {"query": "cloves"}, "lithos_tags": {},
            "lithos_search": {"query": "cloves", "mode": "semantic"},
        }.items():  # fmt: skip
            answer = await server.tools.call(tool, more)
            assert answer is not None
            assert answer["indexing"] == {"done": 0, "total": 2}, tool
            assert "still indexing" in answer["message"], tool
            assert "model" not in answer["message"], tool
        with trio.fail_after(60):
            while not (
                rows := (await server.tools.call("lithos_search", {"query": "cloves"}) or {})["results"]
            ):
                await trio.sleep(0.02)
        assert [(row["path"], row["title"]) for row in rows] == [("Zanzibar.md", "Zanzibar")]
        assert "Cloves" in rows[0]["snippet"]
        refused = await server.tools.call("lithos_search", {"query": "x", "mode": "no"})
        assert refused is not None
        assert "still indexing" not in refused["message"]
        read = await server.tools.call("lithos_read", {"path": "Zanzibar.md"})
        assert read is not None
        assert "Cloves" in read["content"]
        assert read["indexing"]["total"] == 2
        missing = await server.tools.call("lithos_read", {"path": "Nowhere.md"})
        assert missing is not None
        assert missing["code"] == "doc_not_found"
        created = await server.tools.call("lithos_task_create", {"title": "Work", "agent": "a"})
        assert created is not None
        assert "indexing" not in created
        _, health = await server.get(ServerState).report()
        assert health["components"]["index"] == {"status": "warming", "done": 0, "total": 2}
        written: list[Any] = []

        async def write() -> None:
            arguments = {"title": "New", "content": "text", "agent": "a"}
            written.append(await server.tools.call("lithos_write", arguments))

        async def read_by_id() -> None:
            written.append(await server.tools.call("lithos_read", {"id": read["id"]}))

        nursery.start_soon(write)
        nursery.start_soon(read_by_id)
        with trio.move_on_after(0.2):
            await server.get(Opening).known.wait()
        assert written == []
        slow.set()
        with trio.fail_after(60):
            await server.get(Opening).complete.wait()
            while len(written) < 2:
                await trio.sleep(0.01)
        assert {answer.get("status", "read") for answer in written} == {"created", "read"}
        found = await server.tools.call("lithos_search", {"query": "cloves", "mode": "fulltext"})
        assert found is not None
        assert "indexing" not in found
        assert [row["path"] for row in found["results"]] == ["Zanzibar.md"]


async def test_stop_does_not_wait_for_an_unfinished_first_scan(
    tmp_path: Path, vault: Path, slow: threading.Event
) -> None:
    for number in range(50):
        (vault / f"n{number}.md").write_text("text")
    async with fronted(config(tmp_path, vault)) as server:
        server.get(FrontSignals).loaded.set()
        server.get(Opening).stop()
        slow.set()
    assert server.get(Opening).read < 50
    async with serving(tmp_path / "data", storage={"vault": vault}) as lithos:
        assert len(lithos.server.get(Catalogue)) == 52


async def test_vault_that_disappears_during_the_first_scan_is_found_again(
    tmp_path: Path, vault: Path, slow: threading.Event
) -> None:
    aside = tmp_path / "aside"
    async with fronted(config(tmp_path, vault, watch=True)) as server:
        server.get(FrontSignals).loaded.set()
        vault.rename(aside)
        slow.set()
        with trio.fail_after(60):
            await server.get(Opening).complete.wait()
        aside.rename(vault)
        with trio.fail_after(60):
            while await paths_of(server) != {"Zanzibar.md", "deep/er/Mombasa.md"}:
                await trio.sleep(0.05)


async def test_vault_that_cannot_be_listed_is_tried_again(
    tmp_path: Path, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lithos.app.server.RESCAN", 0.01)
    monkeypatch.setattr(start_progress, "SHORT", 0.05)
    real, is_broken = NoteFiles.list_notes, True

    def list_notes(files: NoteFiles) -> Any:
        if is_broken:
            raise OSError(errno.EIO, "Input/output error")
        return real(files)

    monkeypatch.setattr(NoteFiles, "list_notes", list_notes)
    async with fronted(config(tmp_path, vault)) as server:
        with trio.fail_after(60):
            while server.get(Opening).failure is None:
                await trio.sleep(0.01)
        _, health = await server.get(ServerState).report()
        assert "Input/output error" in health["components"]["index"]["error"]
        is_broken = False
        with trio.fail_after(60):
            await server.get(Opening).complete.wait()
        assert len(server.get(Catalogue)) == 2


async def test_write_error_reports_the_progress_of_the_first_scan(
    tmp_path: Path, vault: Path, slow: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_progress, "WRITE_WAIT", 0.05)
    async with fronted(config(tmp_path, vault)) as server:
        server.get(FrontSignals).loaded.set()
        answer = await server.tools.call("lithos_write", {"title": "New", "content": "x", "agent": "a"})
        assert answer is not None
        assert "of 2 so far" in refusal(answer, "internal_error")
        slow.set()


async def test_doctor_creates_nothing_in_a_vault(tmp_path: Path, vault: Path) -> None:
    async with serving(tmp_path / "data", storage={"vault": vault}):
        pass
    before, times = everything(vault), vault.stat().st_mtime_ns
    results = await examine_all(make_patient(config(tmp_path, vault, watch=True)), lambda _: None)
    assert {result.name for result in results if result.status == "fail"} <= {"port"}
    assert everything(vault) == before
    assert vault.stat().st_mtime_ns == times


async def test_vault_backup_can_be_restored_only_to_an_empty_vault(tmp_path: Path, vault: Path) -> None:
    """docs/spec/lifecycle.md §8"""
    (vault / "Alias.md").symlink_to("Zanzibar.md")
    (vault / "picture.png").symlink_to("image.png")
    async with serving(tmp_path / "data", storage={"vault": vault}) as lithos:
        task = await lithos.call("lithos_task_create", title="Kept", agent="a")
        index = back_up(config(tmp_path, vault), tmp_path / "backup")
    assert index.counts["notes"] == 2
    assert dict(index.links) == {"vault/Alias.md": "Zanzibar.md"}

    def settings(name: str, target: Path | None) -> Config:
        return Config(storage=StorageConfig(data_dir=tmp_path / name, vault=target))

    with pytest.raises(BackupRefused, match="--vault"):
        restore(settings("a", None), tmp_path / "backup")
    before = everything(vault)
    with pytest.raises(BackupRefused, match="not empty"):
        restore(settings("a", vault), tmp_path / "backup", force=True)
    assert everything(vault) == before
    assert not (tmp_path / "a").exists()

    restored = restore(settings("b", tmp_path / "fresh"), tmp_path / "backup")
    assert restored.aside is None
    assert set(everything(tmp_path / "fresh")) == {"Alias.md", "Zanzibar.md", "deep/er/Mombasa.md"}
    assert (tmp_path / "fresh" / "Zanzibar.md").read_bytes() == before["Zanzibar.md"]
    assert not (tmp_path / "b" / "vault").exists()
    async with serving(tmp_path / "b", storage={"vault": tmp_path / "fresh"}) as lithos:
        assert (await lithos.call("lithos_task_get", task_id=task["task_id"]))["task"]["title"] == "Kept"
