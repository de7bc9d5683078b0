"""Rankings of several vaults joined to one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.core.learning.joining import Keys, best_of_all, interleave, onto_scale

SCORES = st.lists(st.floats(0, 1), max_size=8)


@given(vaults=st.integers(1, 40), serial=st.integers(0, 2**40), place=st.integers(0, 39))
def test_a_key_tells_the_vault_and_the_note(vaults: int, serial: int, place: int) -> None:
    keys, place = Keys(vaults), place % vaults
    key = keys.of(place, serial)
    assert (keys.place(key), keys.serial(key)) == (place, serial)


def test_with_one_vault_keys_are_the_serials() -> None:
    assert [Keys(1).of(0, serial) for serial in range(5)] == list(range(5))


def test_keys_are_parted_by_vault_in_their_order() -> None:
    keys = Keys(3)
    mixed = [keys.of(2, 7), keys.of(0, 7), keys.of(2, 1)]
    assert keys.by_place(mixed) == {2: [7, 1], 0: [7]}
    assert keys.part(2, dict.fromkeys(mixed, "x")) == {7: "x", 1: "x"}


def test_legs_are_joined_by_score_and_ties_go_by_key() -> None:
    keys = Keys(2)
    joined = keys.join({0: [(5, 0.9), (1, 0.5)], 1: [(0, 0.9), (2, 0.7), (1, 0.5)]}, 4)
    assert joined == [
        (keys.of(1, 0), 0.9),
        (keys.of(0, 5), 0.9),
        (keys.of(1, 2), 0.7),
        (keys.of(0, 1), 0.5),
    ]


@given(legs=st.lists(SCORES, max_size=4), most=st.integers(0, 12))
def test_the_best_of_all_legs_are_those_of_one_list(legs: list[list[float]], most: int) -> None:
    keyed = [[(10 * i + j, score) for j, score in enumerate(leg)] for i, leg in enumerate(legs)]
    flat = sorted((row for leg in keyed for row in leg), key=lambda row: (-row[1], row[0]))
    assert best_of_all(keyed, most) == flat[:most]


def test_scores_of_another_scale_are_stretched_to_it_in_their_order() -> None:
    assert onto_scale([0.2, 0.4, 0.3], [0.9, 0.5]) == pytest.approx([0.5, 0.9, 0.7])
    assert onto_scale([0.2, 0.2], [0.9, 0.5]) == [0.9, 0.9]
    assert onto_scale([0.2], []) == [0.2]
    assert onto_scale([], [0.5]) == []


@given(rows=st.dictionaries(st.text(max_size=3), SCORES, max_size=4), most=st.integers(0, 20))
def test_each_row_is_interleaved_once_and_answers_keep_their_order(
    rows: dict[str, list[float]], most: int
) -> None:
    ranked = {name: sorted(scores, reverse=True) for name, scores in rows.items()}
    joined = interleave(ranked, most)
    assert len(joined) == len(set(joined)) == min(most, sum(map(len, ranked.values())))
    scores = [ranked[name][row] for name, row in joined]
    assert scores == sorted(scores, reverse=True)
    for name in ranked:
        own = [row for vault, row in joined if vault == name]
        assert own == list(range(len(own)))


def test_rows_without_score_come_from_every_answer_in_turn() -> None:
    assert interleave({"a": [0.0, 0.0], "b": [0.5, 0.0]}, 4) == [("b", 0), ("a", 0), ("a", 1), ("b", 1)]
