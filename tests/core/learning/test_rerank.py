"""Merging, reranking and diversifying; the numbers are worked out by hand from the spec."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.config.sections import NOTE_TYPE_PRIORS, RERANK_WEIGHTS
from lithos.core.learning.ranking import (
    DIVERSIFIED,
    SCOUTS,
    Candidate,
    Ranked,
    RerankWeights,
    Scaled,
    Traits,
    best_of,
    diversify,
    explain,
    final_score,
    ground_scores,
    jaccard,
    merge,
    name_words,
    pool_score,
    promising,
    rank,
    scale,
)

WEIGHTS = RerankWeights(
    scouts=RERANK_WEIGHTS, priors=NOTE_TYPE_PRIORS, note_type=0.1, salience=0.1, usage=0.1
)
PLAIN = Traits(note_type="observation", salience=0.5, usage=0.0)


def finds(reason: str = "because", **scores: float) -> list[Candidate]:
    return [Candidate(note_id, score, reason) for note_id, score in scores.items()]


def note(note_id: str, score: float, **scaled: float) -> Ranked:
    return Ranked(note_id, score, scaled, PLAIN)


def ranked(*scores: float) -> list[Ranked]:
    return [note(str(number), score, lexical=1.0) for number, score in enumerate(scores)]


def score_of(scaled: Scaled, traits: Traits) -> float:
    grounds = ground_scores({"a": scaled, "gone": {}}, {"a": traits.note_type}, WEIGHTS)
    assert list(grounds) == ["a"]
    return final_score(grounds["a"], traits, WEIGHTS)


def scored(found: dict[str, list[Candidate]]) -> list[Ranked]:
    pool = merge(found)
    return [Ranked(each, score_of(pool[each], PLAIN), pool[each], PLAIN) for each in pool]


def order(notes: list[Ranked]) -> list[str]:
    return [note.id for note in notes]


def test_scores_of_a_scout_are_stretched_over_zero_to_one():
    assert scale(finds(a=2.0, b=8.0, c=5.0)) == {"a": 0.0, "b": 1.0, "c": 0.5}
    assert scale(finds(a=-3.0, b=1.0)) == {"a": 0.0, "b": 1.0}


def test_a_single_candidate_and_equal_scores_give_one():
    """behaviour 147"""
    assert scale(finds(a=0.01)) == {"a": 1.0}
    assert scale(finds(a=0.0)) == {"a": 1.0}
    assert scale(finds(a=7.0, b=7.0)) == {"a": 1.0, "b": 1.0}
    assert scale([]) == {}


def test_the_largest_weights_there_are_can_be_scaled():
    assert scale(finds(a=-1.7e308, b=1.7e308, c=0.0)) == {"a": 0.0, "b": 1.0, "c": 0.5}


def test_of_a_note_that_a_scout_gives_twice_the_best_score_counts():
    assert scale([*finds(a=1.0, b=3.0), *finds(a=5.0)]) == {"a": 1.0, "b": 0.0}


def test_a_note_unites_scouts_and_reasons_in_table_order():
    found = {
        "graph": finds("linked", b=0.5, c=1.0),
        "lexical": finds("words", a=4.0, b=2.0, c=3.0),
        "vector": finds("meaning", b=0.9),
    }
    pool = merge(found)
    assert pool == {
        "a": {"lexical": 1.0},
        "b": {"vector": 1.0, "lexical": 0.0, "graph": 0.0},
        "c": {"lexical": 0.5, "graph": 1.0},
    }
    assert list(pool["b"]) == ["vector", "lexical", "graph"]
    assert [pool_score(scaled) for scaled in pool.values()] == [1.0, 1.0, 1.0]
    assert explain(found, ["b", "a"]) == {"b": ("meaning", "words", "linked"), "a": ("words",)}


def test_the_best_of_the_pool_have_its_highest_scores_then_more_scouts_then_smaller_ids():
    found = {
        "lexical": finds(z=10.0, low=0.0, mid=4.0, a=10.0),
        "vector": finds(z=0.6, low=0.4),
        "exact_alias": finds(b=1.0),
    }
    assert best_of(merge(found), 9) == ["z", "a", "b", "mid", "low"]
    assert best_of(merge(found), 2) == ["z", "a"]


def test_the_same_reason_is_given_once():
    found = {"graph": finds("linked", a=1.0), "provenance": finds("linked", a=1.0)}
    assert explain(found, ["a", "b"]) == {"a": ("linked",), "b": ()}


def test_the_final_score_is_the_weighted_sum():
    scaled = {"lexical": 0.5, "vector": 1.0, "graph": 0.25}
    traits = Traits(note_type="agent_finding", salience=0.8, usage=0.3)
    # .22*.5 + .21*1 + .13*.25 + .1*.6 + .1*.8 + .1*.3
    assert score_of(scaled, traits) == pytest.approx(0.11 + 0.21 + 0.0325 + 0.06 + 0.08 + 0.03)
    unknown = Traits(note_type="poem", salience=0.0, usage=0.0)
    assert score_of({"task_context": 1.0}, unknown) == pytest.approx(0.04 + 0.05)


def test_a_hit_of_words_stands_above_an_equal_hit_of_meaning():
    """behaviour 145"""
    notes = rank(scored({"lexical": finds(words=3.0), "vector": finds(meaning=0.9)}), 9)
    assert order(notes) == ["words", "meaning"]
    assert [each.score for each in notes] == pytest.approx([0.22 + 0.1, 0.21 + 0.1])


def test_ties_go_to_the_higher_pool_score_then_to_the_id():
    notes = [
        note("a", 0.3, lexical=0.4),
        note("c", 0.3, lexical=0.5),
        note("b", 0.3, lexical=0.5),
        note("z", 0.4, lexical=0.1),
    ]
    assert order(rank(notes, 9)) == ["z", "b", "c", "a"]
    assert order(rank(notes, 2)) == ["z", "b"]


def test_the_words_of_a_name_are_those_of_title_and_path():
    assert name_words("Raft: the Log_2", "Notes/raft-log.md") == {"raft", "the", "log", "2", "notes", "md"}
    assert jaccard(frozenset("abc"), frozenset("bcd")) == 0.5
    assert jaccard(frozenset(), frozenset()) == 0.0


def test_a_note_called_like_a_better_one_moves_behind_another():
    """behaviour 146"""
    words = {"0": {"raft", "log"}, "1": {"raft", "log", "copy"}, "2": {"cooking"}}
    # After 0: 1 has 0.7*0.60 - 0.3*2/3 = 0.22, and 2 has 0.7*0.40 - 0 = 0.28.
    assert order(diversify(ranked(0.7, 0.6, 0.4), words.__getitem__)) == ["0", "2", "1"]
    # With 0.7*0.31 = 0.217 the other is too far behind.
    assert order(diversify(ranked(0.7, 0.6, 0.31), words.__getitem__)) == ["0", "1", "2"]


def test_the_highest_overlap_with_any_picked_note_counts():
    """behaviour 146"""
    words = {"0": {"a"}, "1": {"b"}, "2": {"b"}, "3": {"c"}}
    # 2 repeats 1, not the best: 0.7*0.5 - 0.3*1 = 0.05 < 0.7*0.1.
    assert order(diversify(ranked(0.7, 0.6, 0.5, 0.1), words.__getitem__)) == ["0", "1", "3", "2"]


def test_one_note_or_none_stays_as_it_is():
    """behaviour 146"""
    for notes in (ranked(0.2), []):
        assert diversify(notes, lambda note_id: {"same"}) == notes


def test_only_the_first_thirty_are_told_apart():
    notes = ranked(*(1 - number / 100 for number in range(DIVERSIFIED + 5)))
    words = {str(number): {"same"} for number in range(len(notes))} | {"29": {"other"}, "30": {"third"}}
    diverse = diversify(notes, words.__getitem__)
    assert order(diverse)[:2] == ["0", "29"]
    assert diverse[DIVERSIFIED:] == notes[DIVERSIFIED:]


@given(
    st.dictionaries(
        st.sampled_from(SCOUTS),
        st.lists(st.builds(Candidate, st.sampled_from("abcdef"), st.floats(0, 9), st.just("r")), max_size=6),
    )
)
def test_every_candidate_is_ranked_once_with_a_score_within_bounds(found):
    notes = rank(scored(found), 99)
    assert set(order(notes)) == {c.id for candidates in found.values() for c in candidates}
    assert all(math.isfinite(each.score) and 0.1 <= each.score <= 1.1 for each in notes)
    diverse = diversify(notes, lambda note_id: {note_id})
    assert sorted(order(diverse)) == sorted(order(notes))
    assert diverse[:1] == notes[:1]


@given(
    grounds=st.dictionaries(st.sampled_from("abcdefghij"), st.floats(0, 1)),
    known=st.dictionaries(st.sampled_from("abcdefghij"), st.tuples(st.floats(0, 1), st.floats(0, 1))),
    most=st.integers(1, 6),
)
def test_what_is_not_promising_is_never_among_the_best(grounds, known, most):
    def final(note_id: str) -> float:
        salience, usage = known.get(note_id, (PLAIN.salience, PLAIN.usage))
        return grounds[note_id] + 0.1 * salience + 0.1 * usage

    saliences = {note_id: salience for note_id, (salience, _) in known.items()}
    kept = promising(grounds, saliences, PLAIN, WEIGHTS, most)
    best = sorted(grounds, key=lambda note_id: (-final(note_id), note_id))[:most]
    assert set(best) <= set(kept) <= set(grounds)


def test_notes_that_cannot_catch_up_are_not_promising():
    grounds = {"a": 0.5, "b": 0.4, "c": 0.38, "d": 0.2}
    # Unknown ones have exactly 0.05 more, known ones what their salience gives and up to 0.1 for their use.
    assert promising(grounds, {}, PLAIN, WEIGHTS, 2) == ["a", "b"]
    assert promising(grounds, {"c": 0.5, "d": 1.0}, PLAIN, WEIGHTS, 2) == ["a", "b", "c"]
    assert promising(grounds, {"c": 0.0, "d": 1.0, "b": 0.9}, PLAIN, WEIGHTS, 2) == ["a", "b"]


def test_notes_of_one_scout_keep_their_scores_when_another_finds_some_of_them():
    """Notes with the same score of a scout do not share what other scouts say of one."""
    pool = merge({"source_url": finds(a=1.0, b=1.0, c=1.0), "lexical": finds(b=2.0, a=1.0)})
    assert pool == {
        "a": {"lexical": 0.0, "source_url": 1.0},
        "b": {"lexical": 1.0, "source_url": 1.0},
        "c": {"source_url": 1.0},
    }
