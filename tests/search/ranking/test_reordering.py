"""Corrections that move single notes in a combined ranking (docs/spec/search.md §5, behaviour 263)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.search.ranking.reordering import NEAR_TOP, OWED, highest_named, keep_places, lift_named, sink_bare

KEYS = st.permutations(range(30))


def is_falling(ranked: list[tuple[int, float]]) -> bool:
    return all(one > other for (_, one), (_, other) in pairwise(ranked))


@given(order=KEYS, words=KEYS, meaning=KEYS)
def test_note_near_the_top_of_both_rankings_keeps_its_rank(
    order: list[int], words: list[int], meaning: list[int]
) -> None:
    """A note is never below the lower of its two ranks, or below rank eight. Scores still decrease."""
    kept = keep_places([(key, 1 - place / 50) for place, key in enumerate(order)], (words, meaning))
    places = {key: place for place, (key, _) in enumerate(kept, start=1)}
    assert sorted(places) == list(range(30))
    for key in set(words[:NEAR_TOP]) & set(meaning[:NEAR_TOP]):
        assert places[key] <= max(words.index(key) + 1, meaning.index(key) + 1, OWED)
    assert is_falling(list(kept))


def test_note_ranked_third_and_ninth_does_not_drop_to_eleventh() -> None:
    """Example: `obsidian-git` for the query "git backup plugin" has semantic rank 3 and full-text rank 9."""
    ranked = [(key, 1 - key / 20) for key in range(12)]
    words = [*range(100, 108), 10]
    meaning = [200, 201, 10]
    kept = keep_places(ranked, (words, meaning))
    assert [key for key, _ in kept].index(10) + 1 == 9
    assert [key for key, _ in kept if key != 10] == [key for key in range(12) if key != 10]


def test_ranking_without_corrections_is_returned_as_the_same_object() -> None:
    ranked = [(key, 1 - key / 20) for key in range(12)]
    assert keep_places(ranked, (range(12), range(12))) is ranked
    assert lift_named(ranked, {}) is ranked
    assert highest_named({}) == 1
    assert sink_bare(ranked, {}, {}) is ranked


def test_fully_named_note_ranks_first_and_partially_named_notes_rise() -> None:
    ranked = [(1, 1.0), (2, 0.4), (3, 0.1)]
    named = {3: 1.0, 2: 0.5}
    assert lift_named(ranked, named) == [(3, pytest.approx(1.1)), (1, 1.0), (2, pytest.approx(0.65))]
    assert highest_named(named) == 2


def test_textless_note_ranks_after_notes_that_match_equally_well() -> None:
    """The note covers half of the question. A note that covers only a quarter may rank after it."""
    ranked = [(1, 0.9), (2, 0.5), (3, 0.4), (4, 0.3)]
    sunk = sink_bare(ranked, {1: 0.5}, {2: 0.5, 3: 0.7, 4: 0.25})
    assert [key for key, _ in sunk] == [2, 3, 1, 4]
    assert is_falling(sunk)


def test_note_without_text_and_matching_words_keeps_its_rank() -> None:
    ranked = [(1, 0.9), (2, 0.5)]
    assert sink_bare(ranked, {1: 0.0}, {2: 0.0}) == ranked
