"""Rankings of several vaults joined to one: keys of notes, legs, rows (docs/spec/vaults.md §2).

In each vault notes have serials of its own. A key is made of a serial and the place of the vault, so that
rankings over several are made by the same rules as those of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import TypeVar

from attrs import frozen

V = TypeVar("V")


@frozen
class Keys:
    """The keys of the notes of `vaults` vaults; each vault has a place, from 0."""

    vaults: int

    def of(self, place: int, serial: int) -> int:
        """The key of a note."""
        return serial * self.vaults + place

    def place(self, key: int) -> int:
        """The place of the vault that has a note."""
        return key % self.vaults

    def serial(self, key: int) -> int:
        """The serial of a note in its vault."""
        return key // self.vaults

    def by_place(self, keys: Iterable[int]) -> dict[int, list[int]]:
        """The serials of notes by the place of their vault, in their order."""
        found: dict[int, list[int]] = {}
        for key in keys:
            found.setdefault(self.place(key), []).append(self.serial(key))
        return found

    def part(self, place: int, values: Mapping[int, V]) -> dict[int, V]:
        """Of values by key those of one vault, by serial."""
        return {self.serial(key): value for key, value in values.items() if self.place(key) == place}

    def join(self, legs: Mapping[int, Sequence[tuple[int, float]]], most: int) -> list[tuple[int, float]]:
        """The `most` best of legs (serial, score) by place, as (key, score), best first, ties by key.

        Scores must be of one scale.
        """
        return best_of_all(
            ([(self.of(place, serial), score) for serial, score in leg] for place, leg in legs.items()), most
        )


def best_of_all(legs: Iterable[Iterable[tuple[int, float]]], most: int) -> list[tuple[int, float]]:
    """The `most` best of several legs (key, score), best first, ties by key."""
    found = sorted(chain.from_iterable(legs), key=itemgetter(0))
    found.sort(key=itemgetter(1), reverse=True)
    return found[:most]


def onto_scale(scores: Sequence[float], scale: Sequence[float]) -> list[float]:
    """Scores stretched to the lowest and the highest of another scale; equal ones become its highest.

    For similarities of another model: how near something is, only the other notes of that model say.
    """
    if not scores or not scale:
        return list(scores)
    lowest, highest = min(scores), max(scores)
    least, width = min(scale), max(scale) - min(scale)
    if highest == lowest:
        return [least + width] * len(scores)
    return [least + width * (score - lowest) / (highest - lowest) for score in scores]


def interleave(rows: Mapping[str, Sequence[float]], most: int) -> list[tuple[str, int]]:
    """The `most` best rows of several answers, given the scores of each, best first: (answer, its row).

    Among rows of one score the earlier ones of each answer come first, then the earlier answer.
    """
    ordered = [
        (-score, row, place, name)
        for place, (name, scores) in enumerate(rows.items())
        for row, score in enumerate(scores)
    ]
    return [(name, row) for _, row, _, name in sorted(ordered)[:most]]
