"""The deletion guard: a missing notes folder does not empty the index (docs/spec/lifecycle.md §6)."""

from __future__ import annotations

import shutil

import pytest

from lithos.kernel.values.events import NOTE_DELETED, NOTE_RENAMED
from tests.kernel.actors.watched import UUID, WatchedHouse, note


def fill(house: WatchedHouse, number: int) -> None:
    for n in range(number):
        house.put(f"{n:03}.md", note(n))


async def fill_and_index(house: WatchedHouse, number: int) -> None:
    fill(house, number)
    async with house.watching():
        pass


def remove(house: WatchedHouse, numbers: range) -> list[str]:
    for n in numbers:
        (house.folder / f"{n:03}.md").unlink()
    return [f"{n:03}.md" for n in numbers]


def restart(house: WatchedHouse) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """Close, open and scan in the same way as at a start. Return the events and the ids of the kept notes."""
    house.close()
    house.open()
    house.make_watcher()
    result = house.scan(house.guard.start_rule())
    house.settle(result)
    return [(event.type, str(event.payload["path"])) for event in result.events], result.vanished


async def test_no_note_is_removed_when_over_half_of_21_vanish(house):
    """behaviour 198"""
    fill(house, 21)
    async with house.watching():
        await house.settle_paths(*remove(house, range(11)))
        assert (len(house.catalogue), house.guard.vanished) == (21, 11)
        assert all(len(index.held) == 21 for index in house.indexes)
        assert house.vanished.kept() == {f"{n:03}.md" for n in range(11)}
        await house.compare()
        assert len(house.catalogue) == 21
    assert house.told() == []


@pytest.mark.parametrize(("notes", "lost"), [(20, 20), (21, 10), (40, 20)])
async def test_half_of_many_or_all_of_few_notes_may_vanish(house, notes, lost):
    """behaviour 198"""
    fill(house, notes)
    async with house.watching():
        await house.settle_paths(*remove(house, range(lost)))
        assert (len(house.catalogue), house.guard.vanished) == (notes - lost, 0)
    assert len(house.told()) == lost
    assert house.is_consistent()


async def test_loss_spread_over_several_batches_is_counted_as_one_loss(house):
    """behaviour 198"""
    fill(house, 40)
    async with house.watching():
        for begin in range(0, 40, 5):
            await house.settle_paths(*remove(house, range(begin, begin + 5)))
        assert (len(house.catalogue), house.guard.vanished) == (20, 20)


async def test_deletions_far_apart_in_time_are_not_one_loss(house, monkeypatch):
    fill(house, 40)
    monkeypatch.setattr("lithos.notes.watching.guard.WINDOW", 0.0)
    async with house.watching():
        for begin in range(0, 15, 5):
            await house.settle_paths(*remove(house, range(begin, begin + 5)))
        assert (len(house.catalogue), house.guard.vanished) == (25, 0)


async def test_few_notes_are_kept_while_the_folder_is_missing(house):
    """behaviour 198"""
    fill(house, 3)
    async with house.watching():
        shutil.rmtree(house.folder)
        await house.compare()
        assert (len(house.catalogue), house.guard.vanished) == (3, 3)
    assert house.told() == []


async def test_notes_that_vanish_after_a_mass_loss_are_kept_too(house):
    fill(house, 30)
    async with house.watching():
        await house.settle_paths(*remove(house, range(20)))
        await house.settle_paths(*remove(house, range(20, 21)))
        assert house.guard.vanished == 21


async def test_deletion_guard_ignores_deletions_through_tools(house):
    """behaviour 198"""
    fill(house, 30)
    async with house.watching():
        for n in range(25):
            await house.delete(UUID.format(n))
        await house.settle_paths(*(f"{n:03}.md" for n in range(25)))
        assert (len(house.catalogue), house.guard.vanished) == (5, 0)


async def test_moved_notes_without_id_do_not_count_as_lost(house):
    for n in range(30):
        house.put(f"old/{n}.md", f"text {n}")
    async with house.watching():
        (house.folder / "old").rename(house.folder / "new")
        await house.settle_paths("old", "new")
        assert (len(house.catalogue), house.guard.vanished) == (30, 0)
    assert {kind for kind, _ in house.told()} == {NOTE_RENAMED}
    assert house.is_consistent()


async def test_start_without_the_notes_folder_keeps_even_a_few_notes(house):
    """behaviour 198: opening the stores creates the folder again, but the guard must stay active."""
    await fill_and_index(house, 3)
    shutil.rmtree(house.folder)
    events, vanished = restart(house)
    assert (events, len(vanished)) == ([], 3)
    await house.guard.begin(vanished, is_settled=True)
    events, vanished = restart(house)
    assert (events, len(vanished)) == ([], 3), "now there is an empty folder"
    fill(house, 3)
    assert restart(house) == ([], ())


async def test_start_applies_an_approval_only_to_its_files(house):
    """behaviour 198"""
    await fill_and_index(house, 30)
    remove(house, range(28))
    house.vanished.approve(f"{n:03}.md" for n in range(10))
    events, vanished = restart(house)
    assert events == [(NOTE_DELETED, f"{n:03}.md") for n in range(10)]
    assert vanished == tuple(UUID.format(n) for n in range(10, 28))


def test_damaged_lists_of_vanished_files_are_ignored(house, tmp_path):
    (tmp_path / "accept-vanished.json").write_text("{")
    (tmp_path / "vanished.json").write_text('["a.md"]')
    assert (house.vanished.approved(), house.vanished.kept()) == (frozenset(), frozenset())
