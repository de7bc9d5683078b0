"""Adopted folders of a running server: notes, versions, removal, and folders that are away."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import trio

from lithos.adopt.files_adopting import Adoption
from lithos.adopt.files_memory import MemoryFolder
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.settings import StorageConfig
from lithos.kernel.values.projects import working_in
from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.watching.guard import DeletionGuard
from lithos.notes.watching.watcher import Watcher
from lithos.upkeep.maintenance.backup import back_up
from lithos.upkeep.maintenance.doctor import examine_all, make_patient
from tests.servers import Lithos, serving, until

pytestmark = pytest.mark.needs("adopt")

PREFIX = "memory/claude-code/shop"
INDEX = f"{PREFIX}/MEMORY.md"
#: Sections of a server that sees external changes fast.
WATCHING = {"server": {"watch_files": True}}


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Memory\n\n- Deploys run on Fridays: [[deploys]]\n")
    (folder / "deploys.md").write_text("---\nname: deploys\n---\nThe zeppelin pipeline deploys.\n")
    return folder


def adoption(data: Path) -> Adoption:
    return Adoption.of(StorageConfig(data_dir=data))


def adopt(data: Path, memory: Path) -> None:
    [(linked, is_new)] = adoption(data).adopt("claude-code", [MemoryFolder(memory, "github.com/acme/shop")])
    assert (linked.prefix, is_new) == (PREFIX, True)


@asynccontextmanager
async def adopted(data: Path, memory: Path) -> AsyncIterator[Lithos]:
    """Run a server that takes over the folder while it runs."""
    async with serving(data, **WATCHING) as lithos:
        await until(lambda: lithos.server.get(Watcher).is_settled)
        adopt(data, memory)
        await until(lambda: at(lithos, INDEX) is not None and at(lithos, f"{PREFIX}/deploys.md") is not None)
        yield lithos


def at(lithos: Lithos, path: str):
    return lithos.server.get(Catalogue).at_path(path)


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def server(tmp_path: Path, memory: Path) -> AbstractAsyncContextManager[Lithos]:
    return adopted(tmp_path / "data", memory)


async def test_adopted_files_are_notes_without_a_changed_byte(tmp_path, memory):
    """Behaviour 322."""
    before = bytes_of(memory)
    async with adopted(tmp_path / "data", memory) as lithos:
        with trio.fail_after(60):
            while await lithos.found("zeppelin", mode="fulltext") != ["deploys"]:
                await trio.sleep(0.01)
        note = await lithos.read(at(lithos, INDEX).note.id)
        assert note["content"] == "- Deploys run on Fridays: [[deploys]]"
        graph = lithos.server.get(Catalogue).graph.counts()
        assert (graph.edges, graph.unresolved) == (1, 0)
    assert bytes_of(memory) == before
    assert not (tmp_path / "data" / "knowledge" / "memory").exists()


async def test_next_write_of_the_client_is_a_version(server, memory):
    """Behaviour 322."""
    note_id = at(server, INDEX).note.id
    (memory / "MEMORY.md").write_text("# Memory\n\n- Deploys run on Mondays.\n")
    await until(lambda: at(server, INDEX).note.version == 2)
    assert at(server, INDEX).note.id == note_id
    versions = (await server.call("lithos_history", id=note_id))["versions"]
    assert [row["version"] for row in versions] == [2, 1]
    await server.call("lithos_restore", id=note_id, version=1, agent="ada")
    assert "Fridays" in (memory / "MEMORY.md").read_text()


async def test_new_and_deleted_files_of_the_client_are_followed(server, memory):
    (memory / "fresh.md").write_text("New.")
    await until(lambda: at(server, f"{PREFIX}/fresh.md") is not None)
    (memory / "fresh.md").unlink()
    await until(lambda: at(server, f"{PREFIX}/fresh.md") is None)
    await until(
        lambda: (
            ("note.deleted", f"{PREFIX}/fresh.md")
            in [(kind, told.get("path")) for kind, told in server.events()]
        )
    )


async def test_edit_by_an_agent_changes_only_the_edited_text(server, memory):
    note_id = at(server, INDEX).note.id
    answer = await server.call(
        "lithos_note_edit",
        id=note_id,
        op="find_replace",
        find="Fridays",
        text="Tuesdays",
        agent="ada",
    )
    assert answer["status"] == "updated", answer
    assert (memory / "MEMORY.md").read_text() == "# Memory\n\n- Deploys run on Tuesdays: [[deploys]]\n"
    entry = at(server, INDEX)
    assert (entry.note.id, entry.note.version, entry.identified) == (note_id, 2, False)


async def test_whole_update_by_an_agent_adds_no_key(server, memory):
    note_id = at(server, f"{PREFIX}/deploys.md").note.id
    await server.write("deploys", "The airship pipeline deploys.", id=note_id)
    assert (memory / "deploys.md").read_text() == "---\nname: deploys\n---\nThe airship pipeline deploys.\n"
    assert at(server, f"{PREFIX}/deploys.md").note.version == 2


async def test_versions_of_adopted_notes_survive_a_restart(tmp_path, memory):
    data = tmp_path / "data"
    async with adopted(data, memory) as lithos:
        note_id = at(lithos, INDEX).note.id
        for number in range(3):
            await lithos.call("lithos_note_edit", id=note_id, op="append", text=f"- {number}", agent="ada")
        assert at(lithos, INDEX).note.version == 4
    async with serving(data, **WATCHING) as lithos:
        entry = at(lithos, INDEX)
        assert (entry.note.id, entry.note.version) == (note_id, 4)
        assert lithos.events() == []


async def test_removal_leaves_the_folder_byte_for_byte(tmp_path, memory):
    """Behaviour 324."""
    data = tmp_path / "data"
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in memory.iterdir()}
    async with adopted(data, memory) as lithos:
        found = adoption(data)
        found.remove(found.linked.listed)
        await until(lambda: len(lithos.server.get(Catalogue)) == 0)
        assert lithos.server.get(DeletionGuard).vanished == 0
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in memory.iterdir()} == before


async def test_removal_without_a_server_is_seen_at_the_next_start(tmp_path, memory):
    """Behaviour 324."""
    data, before = tmp_path / "data", bytes_of(memory)
    async with adopted(data, memory):
        pass
    found = adoption(data)
    found.remove(found.linked.listed)
    async with serving(data) as lithos:
        assert len(lithos.server.get(Catalogue)) == 0
    assert bytes_of(memory) == before


@pytest.mark.parametrize("leaves_mount_point", [False, True])
async def test_notes_of_a_folder_that_is_away_are_kept(tmp_path, memory, leaves_mount_point):
    data = tmp_path / "data"
    async with adopted(data, memory) as lithos:
        ids = {at(lithos, INDEX).note.id, at(lithos, f"{PREFIX}/deploys.md").note.id}
        memory.rename(tmp_path / "elsewhere")
        if leaves_mount_point:
            memory.mkdir()
        await until(lambda: set(lithos.server.get(DeletionGuard).kept) == ids)
        own = await lithos.create("An own note")
        (lithos.knowledge / "an-own-note.md").unlink()
        await until(lambda: lithos.server.get(Catalogue).get(own) is None)
        assert not [kind for kind, told in lithos.events() if kind == "note.deleted" and told["id"] in ids]
    async with serving(data, **WATCHING) as lithos:
        assert set(lithos.server.get(DeletionGuard).kept) == ids
        answer = await lithos.call("lithos_write", title="New", content="x", path=PREFIX, agent="ada")
        assert answer["status"] == "error" or leaves_mount_point
        if leaves_mount_point:
            for path in memory.iterdir():
                path.unlink()
            memory.rmdir()
        (tmp_path / "elsewhere" / "deploys.md").unlink()
        (tmp_path / "elsewhere").rename(memory)
        await until(lambda: at(lithos, f"{PREFIX}/deploys.md") is None)
        assert at(lithos, INDEX).note.id in ids
        assert lithos.server.get(DeletionGuard).vanished == 0
        assert os.listdir(memory) == ["MEMORY.md"]


async def test_adopted_notes_have_a_project_and_a_client(server, memory):
    rows = (await server.call("lithos_list", path_prefix=PREFIX))["items"]
    assert {(row["project"], row["client"]) for row in rows} == {("github.com/acme/shop", "claude-code")}
    note = await server.read(at(server, INDEX).note.id)
    assert note["client"] == "claude-code"
    assert "project" not in (memory / "MEMORY.md").read_text()
    assert (await server.call("lithos_list", project="shop"))["total"] == 2


@pytest.mark.parametrize(
    ("agent", "project", "has_index"),
    [
        ("claude-code@laptop", "github.com/acme/shop", False),
        ("claude-code", "github.com/acme/other", True),
        ("codex@laptop", "github.com/acme/shop", True),
    ],
)
async def test_briefing_leaves_out_the_index_that_the_client_loads(server, agent, project, has_index):
    with trio.fail_after(60):
        while len(await server.found("deploys", mode="fulltext")) != 2:
            await trio.sleep(0.01)
    with working_in(project):
        answer = await server.call("lithos_context", query="when do deploys run", agent_id=agent, project="*")
    paths = {item["path"] for item in answer["items"]}
    assert (INDEX in paths) is has_index
    assert f"{PREFIX}/deploys.md" in paths


async def test_session_that_overwrites_another_is_merged_in_the_background(server, memory):
    """Behaviour 323."""
    text = (memory / "MEMORY.md").read_text()
    (memory / "MEMORY.md").write_text(f"{text}- one\n")
    await until(lambda: at(server, INDEX).note.version == 2)
    (memory / "MEMORY.md").write_text(f"{text}- two\n")
    await until(lambda: (memory / "MEMORY.md").read_text() == f"{text}- two\n- one\n")


async def test_backup_contains_adopted_notes(tmp_path, memory):
    async with adopted(tmp_path / "data", memory):
        pass
    config = Config(storage=StorageConfig(data_dir=tmp_path / "data"))
    back_up(config, tmp_path / "copy")
    copied = tmp_path / "copy" / "knowledge" / PREFIX
    assert bytes_of(copied) == bytes_of(memory)
    assert not (tmp_path / "copy" / ".lithos" / "linked-folders.json").exists()


async def test_doctor_reports_a_missing_folder_and_a_long_index(tmp_path, memory):
    """Behaviour 325."""
    (memory / "MEMORY.md").write_text("- x\n" * 300)
    adopt(tmp_path / "data", memory)
    (tmp_path / "data" / "knowledge").mkdir()
    [told] = await told_by_doctor(tmp_path / "data")
    assert told.startswith("memory/claude-code/shop/MEMORY.md has 300 lines of at most 200")
    memory.rename(tmp_path / "elsewhere")
    [told] = await told_by_doctor(tmp_path / "data")
    assert "is missing" in told


async def told_by_doctor(data: Path) -> list[str]:
    config = Config(storage=StorageConfig(data_dir=data))
    results = {each.name: each for each in await examine_all(make_patient(config), lambda _: None)}
    return [each.cause for each in results["adopted memory"].findings if each.way_out]


async def test_edits_add_no_key_in_a_served_vault_either(tmp_path, memory):
    """Behaviour 322."""
    data = tmp_path / "data"
    adopt(data, memory)
    async with serving(data, storage={"vault": True}, server={"watch_files": True}) as lithos:
        note_id = at(lithos, f"{PREFIX}/deploys.md").note.id
        await lithos.write("deploys", "The airship deploys.", id=note_id)
        assert (memory / "deploys.md").read_text() == "---\nname: deploys\n---\nThe airship deploys.\n"
        await lithos.call("lithos_note_edit", id=note_id, op="append", text="Twice.", agent="ada")
        assert (memory / "deploys.md").read_text().endswith("The airship deploys.\n\nTwice.\n")
        versions = (await lithos.call("lithos_history", id=note_id))["versions"]
        assert [row["version"] for row in versions][:2] == [3, 2]
        await lithos.call("lithos_restore", id=note_id, version=2, agent="ada")
        assert (memory / "deploys.md").read_text() == "---\nname: deploys\n---\nThe airship deploys.\n"


async def test_deleted_memory_file_is_restored_in_its_folder(server, memory):
    note_id = at(server, f"{PREFIX}/deploys.md").note.id
    before = (memory / "deploys.md").read_bytes()
    await server.call("lithos_note_edit", id=note_id, op="append", text="More.", agent="ada")
    await server.call("lithos_delete", id=note_id, agent="ada")
    assert not (memory / "deploys.md").exists()
    await server.call("lithos_restore", id=note_id, version=1, agent="ada")
    assert (memory / "deploys.md").read_bytes() == before
    assert at(server, f"{PREFIX}/deploys.md").note.id == note_id
