"""Search for vanished notes: a note is gone only if a walk of an unchanging folder tree misses it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from lithos.kernel.values.events import NOTE_DELETED, NOTE_RENAMED
from lithos.notes.watching.folder_comparison import LOOKS, find_moved, look_again
from tests.kernel.actors.watched import UUID, WatchedHouse, note


def walk_torn(house: WatchedHouse, monkeypatch, *moves: Callable[[], object]) -> list[str]:
    """Run one of `moves` during each of the next folder walks.

    Return a list that grows by one entry per walk.
    """
    real, waiting, walks = house.files.walk, list(moves), []

    def walk() -> Iterator[tuple[str, os.stat_result]]:
        found = sorted(real())
        walks.append(found[0][0] if found else "")
        if waiting:
            found = []
            waiting.pop(0)()
        yield from found

    monkeypatch.setattr(house.files, "walk", walk)
    return walks


def test_note_that_moves_during_a_walk_is_found(house, monkeypatch):
    """behaviour 136"""
    house.put("away.md", note(1))
    entry = {UUID.format(1): house.files.list_notes()[0].state}

    def move(source: str, target: str) -> Callable[[], object]:
        return lambda: (house.folder / source).rename(house.folder / target)

    walks = walk_torn(house, monkeypatch, move("away.md", "b.md"))
    assert find_moved(house.files, entry, {}) == {UUID.format(1): "b.md"}
    assert len(walks) == 2


def test_tree_walks_repeat_until_two_agree_or_limit_is_reached(house, monkeypatch):
    house.put("other.md", note(2))
    wanted = {UUID.format(1): house.files.list_notes()[0].state}
    walks = walk_torn(house, monkeypatch)
    assert find_moved(house.files, wanted, {}) == {}
    assert len(walks) == 2
    monkeypatch.setattr(house.files, "walk", _growing(house))
    assert find_moved(house.files, wanted, {}) == {}
    assert len(list(house.folder.iterdir())) == LOOKS + 1


def _growing(house: WatchedHouse) -> Callable[[], Iterator[tuple[str, os.stat_result]]]:
    real = type(house.files).walk

    def walk() -> Iterator[tuple[str, os.stat_result]]:
        found = list(real(house.files))
        house.put(f"new-{len(found)}.md", "no id")
        yield from found

    return walk


def test_id_in_a_file_is_recognised_regardless_of_its_spelling(house):
    house.put("a.md", note(1).replace(UUID.format(1), UUID.format(1).upper()))
    house.put("b.md", f"---\nid: '{UUID.format(2)}'\n---\n")
    house.put("broken.md", f"---\nid: [{UUID.format(3)}\n---\n")
    wanted = {UUID.format(n): house.files.list_notes()[0].state for n in (1, 2, 3)}
    assert set(find_moved(house.files, wanted, {}).values()) == {"a.md", "b.md"}


async def test_note_is_reported_missing_only_if_found_at_no_path(house):
    """behaviour 136: the notification of the note's new path is late or lost."""
    house.put("a.md", note(1))
    house.put("b.md", note(2))
    async with house.watching():
        (house.folder / "a.md").rename(house.folder / "c.md")
        await house.settle_paths("a.md")
        assert house.path_of(1) == "a.md"
        await house.settle_paths(*house.pending.take().touched)
        assert house.path_of(1) == "c.md"
        (house.folder / "b.md").unlink()
        await house.settle_paths("b.md")
        assert house.path_of(2) is None
    assert house.told() == [(NOTE_RENAMED, "c.md"), (NOTE_DELETED, "b.md")]


def test_comparison_reports_differences_from_the_previous_comparison(house):
    """behaviour 199: the comparison finds even changes that alter neither size nor modification time."""
    house.put("a.md", note(1, "one"))
    house.put("b.md", note(2, "two"))
    house.put("c.md", note(3, "six"))
    seen, touched = look_again(house.files, None)
    assert touched is None
    assert look_again(house.files, seen) == (seen, [])
    status = os.stat(house.folder / "a.md")
    (house.folder / "a.md").write_text(note(1, "ten"))
    os.utime(house.folder / "a.md", ns=(status.st_atime_ns, status.st_mtime_ns))
    (house.folder / "b.md").rename(house.folder / "d.md")
    seen, touched = look_again(house.files, seen)
    assert sorted(touched or ()) == ["a.md", "b.md", "d.md"]
    assert look_again(house.files, seen) == (seen, [])
