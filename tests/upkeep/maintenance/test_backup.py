"""Backups of a running server, restores to another folder, and refusals."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

import lithos.upkeep.files.backup
from lithos.app.main import main
from lithos.events.journal.coordinator import Coordinator
from lithos.events.rows.store import CoordinationStore
from lithos.history.recording.backfill import CatchingUp
from lithos.kernel.actors.threads import Threads
from lithos.kernel.configuration.catalogue import Config
from lithos.kernel.databases.lock import AlreadyOwned, OwnerLock
from lithos.kernel.parts import utc_now
from lithos.kernel.settings import StorageConfig
from lithos.notes.writing.actor_writer import Writer
from lithos.upkeep.files.backup import BackupRefused
from lithos.upkeep.maintenance.backup import back_up, back_up_to_tar, restore
from lithos.upkeep.maintenance.export import export_objects
from tests.e2e.process import LITHOS, clean_environment
from tests.servers import Lithos, put_note, serving

LATER = timedelta(hours=1)


def config_of(data: Path) -> Config:
    return Config(storage=StorageConfig(data_dir=data))


def tree(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


async def fill(lithos: Lithos) -> dict[str, Any]:
    """Create one object of each kind. A test compares the objects after a restore."""
    note = await lithos.create("Kept", "zanzibar is kept")
    other = await lithos.create("Other", "and so is mombasa")
    task = (await lithos.call("lithos_task_create", title="Work", agent="a"))["task_id"]
    claim = await lithos.call("lithos_task_claim", task_id=task, aspect="all", agent="a")
    await lithos.call("lithos_finding_post", task_id=task, agent="a", summary="found", knowledge_id=note)
    edge = await lithos.call(
        "lithos_edge_upsert", from_id=note, to_id=other, type="supports", weight=0.5, namespace="default"
    )
    receipt = await lithos.call("lithos_retrieve", query="zanzibar", agent_id="a", task_id=task)
    return {
        "note": note,
        "task": task,
        "fence": claim["fence"],
        "edge": edge["edge_id"],
        "receipt": receipt["receipt_id"],
    }


async def test_backup_of_a_running_server_contains_every_confirmed_change(tmp_path: Path) -> None:
    """behaviours 191 and 200"""
    data, backup, elsewhere = tmp_path / "data", tmp_path / "backup", tmp_path / "elsewhere"
    put_note(data, "folder/By hand.md", "# By hand\n\ntext\n").with_name("image.png").write_bytes(b"\x89PNG")
    (data / "config.yaml").write_text("search:\n  max_results: 7\n")
    async with serving(data) as lithos:
        made = await fill(lithos)
        head = lithos.server.get(Coordinator).head
        index = await Threads().run(lambda: back_up(config_of(data), backup))
        late = await lithos.create("Late", "written after the backup")
        notes = tree(data / "knowledge")
    assert index.journal_head == head
    assert index.counts["notes"] == 3
    restored = restore(config_of(elsewhere), backup)
    assert restored.aside is None
    assert {path: data for path, data in notes.items() if "late" not in path} == tree(elsewhere / "knowledge")
    assert (elsewhere / "config.yaml").read_bytes() == (data / "config.yaml").read_bytes()
    by_hand = "knowledge/folder/By hand.md"
    assert (elsewhere / by_hand).stat().st_mtime_ns == (data / by_hand).stat().st_mtime_ns
    async with serving(elsewhere) as lithos:
        assert (await lithos.read(made["note"]))["content"] == "zanzibar is kept"
        assert (await lithos.call("lithos_read", id=late))["code"] == "doc_not_found"
        status = (await lithos.call("lithos_task_status", task_id=made["task"]))["tasks"][0]
        assert [claim["fence"] for claim in status["claims"]] == [made["fence"]]
        findings = await lithos.call("lithos_finding_list", task_id=made["task"])
        assert [found["summary"] for found in findings["findings"]] == ["found"]
        edges = (await lithos.call("lithos_edge_list", from_id=made["note"]))["edges"]
        assert [edge["edge_id"] for edge in edges] == [made["edge"]]
        stats = await lithos.call("lithos_node_stats", node_id=made["note"])
        assert stats["retrieval_count"] == 1
        assert await lithos.found("zanzibar") == ["Kept"]


async def test_backup_keeps_the_versions_of_every_note(tmp_path: Path) -> None:
    """behaviour 226: the version history is part of backup and restore."""
    data, backup, elsewhere = tmp_path / "data", tmp_path / "backup", tmp_path / "elsewhere"
    async with serving(data) as lithos:
        kept = await lithos.create("Kept", "first")
        gone = await lithos.create("Gone", "gone")
        for number in range(3):
            await lithos.write("Kept", f"text {number}", id=kept)
        await lithos.call("lithos_delete", id=gone, agent="a")
        versions = _versions(lithos, kept) + _versions(lithos, gone)
        await Threads().run(lambda: back_up(config_of(data), backup))
        await lithos.write("Kept", "after the backup", id=kept)
    assert len(versions) == 6
    restore(config_of(elsewhere), backup)
    async with serving(elsewhere) as lithos:
        await lithos.server.get(CatchingUp).done.wait()
        assert _versions(lithos, kept) + _versions(lithos, gone) == versions


def _versions(lithos: Lithos, note_id: str) -> list[tuple[object, bytes | None]]:
    store = lithos.server.get(Writer)._recorder.store
    assert store is not None
    return [(row, store.content(note_id, row.version)) for row in store.rows(note_id, 100)[0]]


async def test_restored_server_never_reuses_a_sequence_number_or_fence(tmp_path: Path) -> None:
    """behaviour 191"""
    data, backup, elsewhere = tmp_path / "data", tmp_path / "backup", tmp_path / "elsewhere"
    async with serving(data) as lithos:
        made = await fill(lithos)
        await Threads().run(lambda: back_up(config_of(data), backup))
        # The restore undoes all these changes.
        await lithos.create("Lost", "x")
        await lithos.call("lithos_task_release", task_id=made["task"], aspect="all", agent="a")
        await lithos.call("lithos_task_claim", task_id=made["task"], aspect="all", agent="a")
        lost_head = lithos.server.get(Coordinator).head
        claims = (await lithos.call("lithos_task_status", task_id=made["task"]))["tasks"][0]["claims"]
        lost_fence = claims[0]["fence"]
    restore(config_of(elsewhere), backup)
    async with serving(elsewhere) as lithos:
        await lithos.create("New", "y")
        assert lithos.server.get(Coordinator).head > lost_head
        await lithos.call("lithos_task_release", task_id=made["task"], aspect="all", agent="a")
        claim = await lithos.call("lithos_task_claim", task_id=made["task"], aspect="all", agent="b")
        assert claim["fence"] > lost_fence
        store = lithos.server.get(Coordinator)._store
        assert not store.knows_position(lost_head), "an old cursor gets a resync"


async def test_writes_during_a_backup_are_complete_or_absent(tmp_path: Path) -> None:
    """behaviour 200: each file is complete.

    The backup contains all changes that were confirmed before it began.
    """
    data, backup, elsewhere = tmp_path / "data", tmp_path / "backup", tmp_path / "elsewhere"
    long = "word " * 20_000
    async with serving(data) as lithos:
        before = [await lithos.create(f"Before {number}", long) for number in range(5)]
        async with trio.open_nursery() as nursery:

            async def write() -> None:
                number = 0
                while True:
                    number += 1
                    await lithos.create(f"During {number}", long)
                    await lithos.call(
                        "lithos_delete", id=await lithos.create(f"Gone {number}", "x"), agent="a"
                    )

            nursery.start_soon(write)
            await Threads().run(lambda: back_up(config_of(data), backup))
            nursery.cancel_scope.cancel()
    restore(config_of(elsewhere), backup)
    async with serving(elsewhere, server={"max_answer_chars": 0}) as lithos:
        for note in before:
            assert (await lithos.read(note))["content"].strip() == long.strip()
        for path in (elsewhere / "knowledge").glob("during-*.md"):
            assert path.read_text().rstrip().endswith("word"), "a file is never partial"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished backup."""
    folder = tmp_path_factory.mktemp("original")
    data, target = folder / "data", folder / "backup"

    async def make() -> None:
        async with serving(data, settled=False) as lithos:
            await fill(lithos)
            await Threads().run(lambda: back_up(config_of(data), target))

    trio.run(make)
    return target


@pytest.fixture
def backup(original: Path, tmp_path: Path) -> Path:
    """Return a copy of the backup that a test may damage."""
    return shutil.copytree(original, tmp_path / "backup")


def change_a_byte(backup: Path) -> None:
    path = backup / "knowledge" / "kept.md"
    path.write_bytes(path.read_bytes().replace(b"zanzibar", b"zanzibaz"))


def drop_a_file(backup: Path) -> None:
    (backup / "knowledge" / "kept.md").unlink()


def add_a_file(backup: Path) -> None:
    (backup / "knowledge" / "intruder.md").write_text("hello")


def cut_a_database(backup: Path) -> None:
    path = backup / ".lithos" / "coordination.db"
    path.write_bytes(path.read_bytes()[:-4096])


def lose_the_index(backup: Path) -> None:
    (backup / "backup.json").unlink()


def garble_the_index(backup: Path) -> None:
    (backup / "backup.json").write_text("{")


def point_outside(backup: Path) -> None:
    document = json.loads((backup / "backup.json").read_text())
    document["files"]["../escaped.md"] = {"size": 1, "sha256": "", "mtime_ns": 0}
    (backup / "backup.json").write_text(json.dumps(document))


def link_outside(backup: Path) -> None:
    document = json.loads((backup / "backup.json").read_text())
    document["links"]["knowledge/escaped.md"] = "../config.yaml"
    (backup / "backup.json").write_text(json.dumps(document))


TAMPERING = [
    change_a_byte,
    drop_a_file,
    add_a_file,
    cut_a_database,
    lose_the_index,
    garble_the_index,
    point_outside,
    link_outside,
]


@pytest.mark.parametrize("tamper", TAMPERING)
async def test_damaged_backup_is_refused_without_changing_the_target(
    tamper: Callable[[Path], None], backup: Path, tmp_path: Path
) -> None:
    """behaviour 200"""
    tamper(backup)
    target = tmp_path / "target"
    put_note(target, "mine.md", "mine\n")
    before = tree(target)
    with pytest.raises(BackupRefused):
        restore(config_of(target), backup, force=True)
    assert tree(target) == before


async def test_nonempty_directory_is_refused_or_moved_aside_with_force(backup: Path, tmp_path: Path) -> None:
    """docs/spec/lifecycle.md §8"""
    target = tmp_path / "target"
    put_note(target, "mine.md", "mine\n")
    (target / ".lithos").mkdir()
    (target / ".lithos" / "edges.db").write_bytes(b"old")
    before = tree(target)
    with pytest.raises(BackupRefused, match="not empty"):
        restore(config_of(target), backup)
    assert tree(target) == before
    restored = restore(config_of(target), backup, force=True)
    assert restored.aside is not None
    assert {path: data for path, data in tree(restored.aside).items() if path in before} == before
    assert (target / "knowledge" / "kept.md").exists()
    assert not (target / "knowledge" / "mine.md").exists()


async def test_directory_of_a_running_server_cannot_be_a_restore_target(backup: Path, tmp_path: Path) -> None:
    """behaviour 197"""
    lock = OwnerLock(tmp_path / "target" / ".lithos" / "lock")
    lock.acquire("2026-01-01T00:00:00Z")
    try:
        with pytest.raises(AlreadyOwned):
            restore(config_of(tmp_path / "target"), backup)
    finally:
        lock.release()


async def test_failed_backup_has_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/spec/lifecycle.md §8"""
    data = tmp_path / "data"
    put_note(data, "a.md", "a\n")
    put_note(data, "b.md", "b\n")
    real = lithos.upkeep.files.backup.copy_file

    def full(source: Path, target: Path) -> Any:
        if source.name == "b.md":
            raise OSError(28, "No space left on device")
        return real(source, target)

    monkeypatch.setattr(lithos.upkeep.files.backup, "copy_file", full)
    with pytest.raises(OSError, match="No space left"):
        back_up(config_of(data), tmp_path / "backup")
    assert not (tmp_path / "backup" / "backup.json").exists()
    with pytest.raises(BackupRefused, match="not finished"):
        restore(config_of(tmp_path / "target"), tmp_path / "backup")


def test_backup_needs_an_empty_target_folder_outside_the_notes(tmp_path: Path) -> None:
    data = tmp_path / "data"
    put_note(data, "a.md", "a\n")
    occupied = tmp_path / "occupied"
    occupied.mkdir()
    (occupied / "x").write_text("x")
    for target, reason in (
        (occupied, "not empty"),
        (data / "knowledge" / "backup", "is in the notes folder"),
        (occupied / "x", "not empty"),
    ):
        with pytest.raises(BackupRefused, match=reason):
            back_up(config_of(data), target)
    with pytest.raises(BackupRefused, match="no notes"):
        back_up(config_of(tmp_path / "nowhere"), tmp_path / "backup")


async def test_archive_is_restored_like_a_directory_and_refused_when_broken(tmp_path: Path) -> None:
    data, archive = tmp_path / "data", tmp_path / "all.tar"
    async with serving(data, settled=False) as lithos:
        await fill(lithos)
    back_up_to_tar(config_of(data), archive)
    restore(config_of(tmp_path / "elsewhere"), archive)
    assert tree(data / "knowledge") == tree(tmp_path / "elsewhere" / "knowledge")
    with pytest.raises(BackupRefused, match="already exists"):
        back_up_to_tar(config_of(data), archive)
    archive.write_bytes(archive.read_bytes()[:3000])
    with pytest.raises(BackupRefused):
        restore(config_of(tmp_path / "third"), archive)
    with pytest.raises(BackupRefused, match="does not exist"):
        restore(config_of(tmp_path / "third"), tmp_path / "absent")


def test_archive_cannot_write_outside_its_folder(tmp_path: Path) -> None:
    evil = tmp_path / "evil.tar"
    (tmp_path / "x").write_text("x")
    with tarfile.open(evil, "w") as tar:
        tar.add(tmp_path / "x", arcname="../escaped")
    with pytest.raises(BackupRefused):
        restore(config_of(tmp_path / "data"), evil)
    assert not (tmp_path.parent / "escaped").exists()


def test_links_between_notes_are_kept_and_other_links_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """behaviour 200, docs/spec/lifecycle.md §8"""
    data, backup, target = tmp_path / "data", tmp_path / "backup", tmp_path / "target"
    put_note(data, "shared/plan.txt", "# Plan\n\nzanzibar\n")
    notes = data / "knowledge"
    (notes / "plan.md").symlink_to(notes / "shared" / "plan.txt")  # The link has an absolute target.
    (notes / "shared" / "again.md").symlink_to("../plan.md")
    (notes / "folder").symlink_to("shared", target_is_directory=True)
    (notes / "loop").symlink_to(".")
    (tmp_path / "secret.md").write_text("secret")
    (notes / "outside.md").symlink_to(tmp_path / "secret.md")
    (notes / "nowhere.md").symlink_to("gone.md")
    assert main(["backup", str(backup), "-d", str(data)]) == 0
    told = capsys.readouterr().out
    assert "Symbolic links among the notes: 4" in told
    assert "Not part of the backup: knowledge/nowhere.md, knowledge/outside.md" in told
    index = json.loads((backup / "backup.json").read_text())
    assert index["left_out"] == ["knowledge/nowhere.md", "knowledge/outside.md"]
    shutil.rmtree(data)
    assert main(["restore", str(backup), "-d", str(target)]) == 0
    restored = target / "knowledge"
    assert {path.name: os.readlink(path) for path in restored.rglob("*") if path.is_symlink()} == {
        "plan.md": "shared/plan.txt", "again.md": "plan.txt", "folder": "shared", "loop": ".",
    }  # fmt: skip
    capsys.readouterr()
    assert main(["search", "zanzibar", "-d", str(target)]) == 0
    assert "Plan" in capsys.readouterr().out


async def test_export_has_one_line_per_object(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data, settled=False) as lithos:
        made = await fill(lithos)
        second = (
            await lithos.call("lithos_task_create", title="Next", agent="a", depends_on=[made["task"]])
        )["task_id"]
        exported = await Threads().run(lambda: list(export_objects(config_of(data))))
    kinds = [item["kind"] for item in exported]
    counts = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    assert counts == {"note": 2, "agent": 3, "task": 2, "claim": 1, "finding": 1, "task_edge": 1, "edge": 1}
    by_kind = {item["kind"]: item for item in exported}
    assert by_kind["task_edge"]["to_task_id"] == second
    assert by_kind["edge"]["edge_id"] == made["edge"]
    note = next(item for item in exported if item.get("id") == made["note"])
    assert note["content"] == "zanzibar is kept"
    assert note["metadata"]["author"]


def test_backup_restore_and_export_commands_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """behaviour 209"""
    data, backup, target = tmp_path / "data", tmp_path / "backup", tmp_path / "target"
    put_note(data, "a.md", "# A\n\nzanzibar\n")

    def run(*words: str | Path) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    code, out, _ = run("backup", backup, "-d", data)
    assert (code, out) == (0, f"Backed up 1 notes, 1 files, 14 bytes to {backup}\n")
    code, _, err = run("backup", backup, "-d", data)
    assert code == 1
    assert "not empty" in err
    code, out, _ = run("restore", backup, "-d", target, "--json")
    assert (code, json.loads(out)["indexed"]) == (0, 1)
    assert "zanzibar" in run("search", "zanzibar", "-d", target)[1]
    code, out, _ = run("export", "-d", target)
    assert (code, [json.loads(line)["kind"] for line in out.splitlines()]) == (0, ["note"])
    code, out, _ = run("export", tmp_path / "all.tar", "--format", "tar", "--json", "-d", target)
    assert (code, json.loads(out)["counts"]["notes"]) == (0, 1)
    assert run("export", "--format", "tar", "-d", target)[0] == 2
    assert run("export", "-", "-d", target)[:2] == (0, run("export", "-d", target)[1])
    shutil.rmtree(backup)
    assert run("restore", backup, "-d", tmp_path / "third")[0] == 1


@pytest.mark.slow
def test_archive_is_written_to_stdout_and_can_be_restored(tmp_path: Path) -> None:
    data = tmp_path / "data"
    put_note(data, "a.md", "# A\n\nzanzibar\n")
    command = [*LITHOS, "export", "-", "--format", "tar", "-d", str(data)]
    done = subprocess.run(command, capture_output=True, env=clean_environment(), check=True, timeout=60)
    assert done.stderr == b"Exported 1 notes, 1 files\n"
    (tmp_path / "all.tar").write_bytes(done.stdout)
    restored = restore(config_of(tmp_path / "other"), tmp_path / "all.tar")
    assert restored.index.counts["notes"] == 1
    assert (tmp_path / "other" / "knowledge" / "a.md").read_text() == "# A\n\nzanzibar\n"


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_backup_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    data = tmp_path / "data"
    put_note(data, "a.md", "# A\n")
    CoordinationStore.open(data / ".lithos" / "coordination.db", utc_now()).close()
    back_up(config_of(data), tmp_path / "backup")
    copied = tmp_path / "backup" / ".lithos" / "coordination.db"
    assert stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o700
    assert stat.S_IMODE(copied.stat().st_mode) == 0o600
