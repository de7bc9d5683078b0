"""The keeper: a displaced file is deleted once no program can write to it any more. No bytes are lost."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
import trio

from lithos.notes.files.displaced import Displaced
from lithos.notes.files.values import digest_of
from tests.fakes import START
from tests.kernel.actors.house import House

pytestmark = pytest.mark.autojump


def private(house: House) -> list[str]:
    return [path.name for path in house.files.root.iterdir() if path.name.startswith(".")]


async def test_displaced_file_is_deleted_after_its_grace_period(house):
    async with house.with_note() as note:
        await house.update(note.id, "Note", "new")
        assert len(private(house)) == house.keeper.depth == 1
        await trio.sleep(61)
        assert (private(house), house.keeper.depth) == ([], 0)
    assert house.displaced.list() == []


async def test_shutdown_leaves_no_displaced_files_on_systems_with_leases(house):
    if not house.files.protection.leases:
        pytest.skip("this file system has no leases")
    async with house.with_note() as note:
        await house.update(note.id, "Note", "new")
    assert private(house) == []


async def test_displaced_file_is_deleted_after_a_rename_of_its_folder(house):
    """Issue 25, number 9: displaced files stayed in the renamed folder until the next start."""
    async with house.with_note(path="a") as note:
        await house.update(note.id, "Note", "new")
        (house.files.root / "a").rename(house.files.root / "b")
        await trio.sleep(121)
        assert [path.name for path in house.files.root.rglob("*.*")] == ["note.md"]
        assert house.keeper.depth == 0
    assert house.displaced.list() == []


async def test_shutdown_finds_displaced_files_in_a_renamed_folder(house):
    if not house.files.protection.leases:
        pytest.skip("this file system has no leases")
    async with house.with_note(path="a") as note:
        await house.update(note.id, "Note", "new")
        (house.files.root / "a").rename(house.files.root / "b")
    assert [path.name for path in house.files.root.rglob("*.*")] == ["note.md"]


async def test_late_write_to_a_displaced_file_is_saved_and_reported(house, caplog):
    """Issue 11, defect 2: no byte that a person saved is lost."""
    caplog.set_level(logging.WARNING)
    async with house.with_note(path="a") as note:
        await house.update(note.id, "Note", "new")
        (name,) = [path for path in (house.files.root / "a").iterdir() if path.name.startswith(".")]
        with name.open("ab") as file:  # Simulate an editor that opened the file before it was replaced.
            file.write(b"late")
        await trio.sleep(61)
    (kept,) = house.displaced.list()
    assert kept.path.read_bytes().endswith(b"late")
    assert kept.note == note.path == "a/note.md"
    assert "moved aside" in caplog.text


async def test_displaced_file_is_kept_while_a_program_has_it_open(house):
    if not house.files.protection.leases:
        pytest.skip("this file system has no leases")
    async with house.with_note() as note:
        await house.update(note.id, "Note", "new")
        (name,) = private(house)
        with (house.files.root / name).open("ab") as file:
            await trio.sleep(500)
            assert house.keeper.depth == 1
            file.write(b"at last")
        await trio.sleep(100)
        assert (private(house), house.keeper.depth) == ([], 0)
    assert [kept.path.read_bytes()[-7:] for kept in house.displaced.list()] == [b"at last"]


@pytest.mark.parametrize("is_deleted", [False, True])
async def test_unnoticed_edit_is_saved_when_an_agent_replaces_it(house, is_deleted):
    async with house.with_note() as note:
        target = house.files.root / note.path
        edited = target.read_bytes() + b"by hand\n"
        target.write_bytes(edited)
        done = await (house.delete(note.id) if is_deleted else house.update(note.id, "Note", "mine"))
        assert done.status == ("deleted" if is_deleted else "updated")
        await trio.sleep(61)
    assert [kept.path.read_bytes() for kept in house.displaced.list()] == [edited]


async def test_many_updates_are_fast_and_leave_no_displaced_files(house):
    async with house.with_note() as note:
        began = trio.current_time()
        for number in range(30):
            await house.update(note.id, "Note", f"text {number}")
        assert trio.current_time() - began < 1, "no pause in virtual time"
        await trio.sleep(61)
        assert private(house) == []
    assert house.displaced.list() == []


async def test_old_displaced_texts_are_deleted_once_a_day(house):
    async with trio.open_nursery() as nursery:
        await nursery.start(house.keeper.run)
        house.displaced.save("a.md", b"text", house.clock())
        await trio.sleep(25 * 3600)
        assert len(house.displaced.list()) == 1
        house.clock.advance(8 * 24 * 3600)
        await trio.sleep(25 * 3600)
        assert list(house.displaced.folder.iterdir()) == []
        nursery.cancel_scope.cancel()


def test_displaced_texts_are_limited_in_size_and_stored_once(tmp_path, monkeypatch):
    monkeypatch.setattr("lithos.notes.files.displaced.KEPT_BYTES", 100)
    displaced = Displaced(tmp_path / "displaced")
    first = displaced.save("x/a.md", b"text", START)
    assert displaced.save("x/a.md", b"text", START + timedelta(hours=1)) == first
    assert displaced.save("x/b.md", b"text", START) != first
    assert first.read_bytes() == b"text"
    assert digest_of(b"text")[:16] in first.name
    for number in range(3):
        displaced.save(f"{number}.md", bytes([number]) * 50, START + timedelta(minutes=number + 1))
    assert displaced.prune(START + timedelta(days=1)) == 3
    assert [kept.note for kept in displaced.list()] == ["1.md", "2.md"]
    assert displaced.prune(START + timedelta(days=9)) == 2
    assert list(displaced.folder.iterdir()) == []
