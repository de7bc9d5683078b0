"""Conversation turns: recognition of notes as turns, and neighbours of turns."""

from __future__ import annotations

import attrs
import pytest

from lithos.notes.catalogue.catalogue import Catalogue
from lithos.notes.catalogue.conversation_turns import APART, LONGEST, Turns
from lithos.notes.files.manifest import Entry
from tests.fakes import make_entry


def turn(serial: int, when: str, path: str | None = None) -> Entry:
    return make_entry(serial, path or f"talk/{serial}.md", title=f"Ann, {when}")


def beside(turns: Turns, serial: int) -> list[int]:
    assert serial in turns
    return turns.beside(serial)


def test_neighbouring_turns_are_adjacent_in_time_regardless_of_path() -> None:
    turns = Turns()
    for serial, minute in ((1, 40), (2, 20), (3, 30)):
        turns.enter(turn(serial, f"2024-03-05 14:{minute}"))
    assert [beside(turns, serial) for serial in (2, 3, 1)] == [[3], [2, 1], [3]]


def test_turns_with_equal_times_are_ordered_by_number_in_path() -> None:
    """A conversation may record only the time of the whole meeting. All its turns then have the same time."""
    turns = Turns()
    for serial in (9, 10, 11):
        turns.enter(turn(serial, "2024-03-05 14:00", f"talk/turn-{serial}.md"))
    assert beside(turns, 10) == [9, 11]


@pytest.mark.parametrize(
    "other",
    [
        turn(2, f"2024-03-05 14:{APART + 1}"),
        turn(2, "2024-03-06 14:00"),
        turn(2, "2024-03-05 14:01", "elsewhere/2.md"),
    ],
)
def test_turns_in_different_folders_or_far_apart_are_not_neighbours(other: Entry) -> None:
    turns = Turns()
    turns.enter(turn(1, "2024-03-05 14:00"))
    turns.enter(other)
    assert beside(turns, 1) == beside(turns, 2) == []


def test_untimed_and_long_notes_are_not_turns() -> None:
    turns = Turns()
    turns.enter(make_entry(1, title="Meeting of 2024-03-05"))
    turns.enter(make_entry(2, title="Room 2024-03-05 31:00"))
    said = turn(3, "2024-03-05 14:00")
    turns.enter(attrs.evolve(said, state=attrs.evolve(said.state, size=LONGEST + 1)))
    assert len(turns) == 0


def test_catalogue_turns_follow_every_note_change() -> None:
    catalogue = Catalogue()
    catalogue.load([turn(serial, f"2024-03-05 14:0{serial}") for serial in (1, 2, 3)])
    assert beside(catalogue.turns, 2) == [1, 3]
    catalogue.put(turn(1, "2024-03-05 14:09"))
    assert beside(catalogue.turns, 3) == [2, 1]
    catalogue.remove(turn(3, "2024-03-05 14:03").note.id)
    assert beside(catalogue.turns, 2) == [1]
    said = turn(1, "2024-03-05 14:09")
    catalogue.put(attrs.evolve(said, state=attrs.evolve(said.state, size=LONGEST + 1)))
    assert beside(catalogue.turns, 2) == []
    catalogue.put(said)
    assert beside(catalogue.turns, 2) == [1]
    catalogue.put(make_entry(2, "talk/2.md", title="No turn any more"))
    assert 2 not in catalogue.turns
    assert beside(catalogue.turns, 1) == []
