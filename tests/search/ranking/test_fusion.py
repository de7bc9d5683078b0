from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.search.ranking.ranking import NEIGHBOUR, add_neighbours, blend, reciprocal_rank


def list_blended(
    lexical: list[tuple[str, float]], semantic: list[tuple[str, float]], weight: float
) -> list[tuple[str, float]]:
    return list(blend(lexical, semantic, weight))


LEG = st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 1e9)), max_size=8)


def test_blended_scores_match_manually_computed_numbers() -> None:
    """behaviour 211.

    Lexical: 8/8 = 1, 4/8 = 0.5, 2/8 = 0.25. Semantic: (0.7-0.5)/0.4 = 0.5, 0.4/0.4 = 1, 0.
    With w = 0.2: a 0.8, b 0.4 + 0.1 = 0.5, c 0.2 + 0.2 = 0.4, d 0.
    """
    lexical = [("a", 8.0), ("b", 4.0), ("c", 2.0)]
    semantic = [("c", 0.9), ("b", 0.7), ("d", 0.5)]
    result = list_blended(lexical, semantic, 0.2)
    assert [key for key, _ in result] == ["a", "b", "c", "d"]
    assert [score for _, score in result] == pytest.approx([0.8, 0.5, 0.4, 0.0])


def test_ranking_with_one_distinct_score_is_scaled_to_one() -> None:
    """behaviour 211: equal scores cause no division by zero."""
    assert list_blended([("a", 3.0)], [("b", 0.4)], 0.25) == [("a", 0.75), ("b", 0.25)]
    assert list_blended([("a", 0.0), ("b", 0.0)], [], 0.25) == [("a", 0.75), ("b", 0.75)]
    assert list_blended([], [("a", 0.5), ("b", 0.5)], 0.25) == [("a", 0.25), ("b", 0.25)]
    assert list_blended([], [], 0.25) == []


def test_reciprocal_rank_matches_manually_computed_numbers() -> None:
    """behaviour 211: 1/61 + 1/62, 1/61, 1/62, 1/63."""
    result = reciprocal_rank([["a", "b", "c"], ["d", "a"]])
    assert [key for key, _ in result] == ["a", "d", "b", "c"]
    assert [score for _, score in result] == pytest.approx(
        [0.0325224749, 0.0163934426, 0.0161290323, 0.0158730159]
    )
    assert reciprocal_rank([["x"]], k=1) == [("x", 0.5)]
    assert reciprocal_rank([]) == []


def test_hit_in_both_rankings_outranks_a_hit_in_one_ranking() -> None:
    """behaviour 61."""
    assert reciprocal_rank([["a", "both"], ["b", "both"]])[0][0] == "both"
    lexical = [("top", 9.0), ("both", 5.0), ("one", 5.0)]
    semantic = [("best", 0.9), ("both", 0.6), ("last", 0.5)]
    keys = [key for key, _ in list_blended(lexical, semantic, 0.2)]
    assert keys.index("both") < keys.index("one")


def test_hits_with_equal_scores_are_ordered_by_key() -> None:
    assert [key for key, _ in reciprocal_rank([["b"], ["a"]])] == ["a", "b"]
    assert [key for key, _ in list_blended([("b", 1.0), ("a", 1.0)], [], 0.2)] == ["a", "b"]


def test_repeated_hit_counts_once_with_its_best_score() -> None:
    assert list_blended([("a", 4.0), ("a", 2.0), ("b", 2.0)], [], 0.0) == [("a", 1.0), ("b", 0.5)]
    assert reciprocal_rank([["a", "a"]], k=0) == [("a", 1.0)]


@given(LEG, LEG, st.floats(0, 1))
def test_blended_scores_are_between_0_and_1_and_sorted(
    lexical: list[tuple[str, float]], semantic: list[tuple[str, float]], weight: float
) -> None:
    result = list_blended(lexical, semantic, weight)
    assert {key for key, _ in result} == {key for key, _ in [*lexical, *semantic]}
    assert all(0 <= score <= 1 + 1e-9 for _, score in result)
    assert result == sorted(result, key=lambda hit: (-hit[1], hit[0]))


def test_low_ranked_hits_are_sorted_by_score_and_key() -> None:
    lexical = [(f"{place:03}", float(1 + place % 7)) for place in range(300)]
    result = list_blended(lexical, [("zzz", 0.5)], 0.2)
    assert len(result) == 301
    assert result == sorted(result, key=lambda hit: (-hit[1], hit[0]))


def test_conversation_turn_gets_a_share_of_its_better_neighbour() -> None:
    """docs/spec/search.md §5."""
    fused = [(1, 1.0), (9, 0.6), (2, 0.5), (3, 0.2)]
    beside = {1: [2], 2: [1, 3], 3: [2, 7]}.__getitem__
    ranked, added, whole = add_neighbours(iter(fused), beside, {1, 2, 3})
    parts = {1: NEIGHBOUR * 0.5, 2: NEIGHBOUR * 1.0, 3: NEIGHBOUR * 0.5}
    assert whole == 1 + parts[1]
    assert added == pytest.approx({key: part / whole for key, part in parts.items()})
    sums = [(1, 1.0 + parts[1]), (2, 0.5 + parts[2]), (9, 0.6), (3, 0.2 + parts[3])]
    assert list(ranked) == [(key, pytest.approx(score / whole)) for key, score in sums]


def test_scores_stay_unchanged_without_conversation_turns() -> None:
    fused = [(1, 1.0), (2, 0.5)]
    ranked, added, whole = add_neighbours(iter(fused), lambda _: [1], {7})
    assert (list(ranked), added, whole) == (fused, {}, 1.0)
