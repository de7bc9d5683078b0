"""Scaling and merging of the scouts' results, compared with numbers computed manually from the spec."""

from __future__ import annotations

from lithos.search.ranking.ranking import ScoutHit, explain, merge, scale


def finds(reason: str = "because", **scores: float) -> list[ScoutHit]:
    return [ScoutHit(note_id, score, reason) for note_id, score in scores.items()]


def test_scores_of_a_scout_are_scaled_to_zero_to_one():
    assert scale(finds(a=2.0, b=8.0, c=5.0)) == {"a": 0.0, "b": 1.0, "c": 0.5}
    assert scale(finds(a=-3.0, b=1.0)) == {"a": 0.0, "b": 1.0}


def test_single_candidate_and_equal_scores_are_scaled_to_one():
    assert scale(finds(a=0.01)) == {"a": 1.0}
    assert scale(finds(a=0.0)) == {"a": 1.0}
    assert scale(finds(a=7.0, b=7.0)) == {"a": 1.0, "b": 1.0}
    assert scale([]) == {}


def test_scores_with_extreme_weights_can_be_scaled():
    assert scale(finds(a=-1.7e308, b=1.7e308, c=0.0)) == {"a": 0.0, "b": 1.0, "c": 0.5}


def test_best_score_counts_when_a_scout_repeats_a_note():
    assert scale([*finds(a=1.0, b=3.0), *finds(a=5.0)]) == {"a": 1.0, "b": 0.0}


def test_merged_note_has_its_best_score_and_ordered_reasons():
    found = {
        "graph": finds("linked", b=0.5, c=1.0),
        "lexical": finds("words", a=4.0, b=2.0, c=3.0),
        "vector": finds("meaning", b=0.9),
    }
    assert merge(found) == {"a": 1.0, "b": 1.0, "c": 1.0}
    assert merge({"lexical": finds(a=4.0, b=2.0, c=3.0)}) == {"a": 1.0, "b": 0.0, "c": 0.5}
    assert merge({}) == {}
    assert explain(found, ["b", "a"]) == {"b": ("meaning", "words", "linked"), "a": ("words",)}
