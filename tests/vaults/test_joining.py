"""Merging of the answers of several vaults, and the caller in each vault."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from lithos.kernel.values.principals import Principal
from lithos.search.ranking.ranking import blend_parts
from lithos.vaults.model_joining import Scale, by_rank, even_out, interleave
from lithos.vaults.service.joint import JointPrincipal, VaultSet

SCORES = st.lists(st.floats(0, 1), max_size=8)
LEG = st.dictionaries(st.integers(0, 20), st.integers(10, 100).map(lambda value: value / 100), min_size=1)
WEIGHT = 0.4


def scale(words: dict[int, float], near: dict[int, float], model: object = "one") -> Scale:
    return Scale(
        words=max(words.values(), default=0.0),
        lowest=min(near.values(), default=0.0),
        highest=max(near.values(), default=0.0),
        meaning=WEIGHT,
        model=model,
    )


@given(legs=st.lists(st.tuples(LEG, LEG), min_size=2, max_size=3))
def test_scores_on_a_common_scale_equal_scores_of_one_vault(
    legs: list[tuple[dict[int, float], dict[int, float]]],
) -> None:
    """The expected scores are the scores of a single vault with the same BM25 scores and similarities."""
    whole = Scale.whole([scale(*each) for each in legs])
    width = whole.highest - whole.lowest
    for words, near in legs:
        lexical, meaning = blend_parts(list(words.items()), list(near.items()), WEIGHT)
        own = scale(words, near)
        for key in words.keys() | near.keys():
            part = meaning.get(key)
            expected = (1 - WEIGHT) * words.get(key, 0.0) / whole.words
            if key in near:
                expected += WEIGHT * ((near[key] - whole.lowest) / width if width else 1.0)
            score = lexical.get(key, 0.0) + (part or 0.0)
            assert score + own.onto(whole, lexical.get(key, 0.0), part) == pytest.approx(expected)


def test_similarities_of_different_models_keep_their_own_scale() -> None:
    one, other = scale({1: 2.0}, {1: 0.9, 2: 0.5}), scale({1: 1.0}, {1: 0.3, 2: 0.1}, "other")
    whole = Scale.whole([one, other])
    assert whole.model is None
    assert other.onto(whole, 0.0, 0.4) == 0.0
    assert other.onto(whole, 0.6, 0.4) == pytest.approx(-0.3)


def test_empty_scales_do_not_change_a_score() -> None:
    assert Scale.whole([]) == Scale.whole([Scale(), Scale()]) == Scale()
    assert Scale().onto(Scale(), 0.5, 0.5) == 0.0


def test_bm25_scores_count_more_where_words_are_common() -> None:
    assert even_out({"a": 1.0, "b": 3.0, "c": 0.0}) == pytest.approx({"a": 4 / 3, "b": 4 / 9, "c": 1.0})
    assert even_out({"a": 2.0}) == {"a": 1.0}
    assert even_out({}) == {}


def test_rank_scores_decrease_from_row_to_row() -> None:
    assert by_rank(2) == [1 / 61, 1 / 62]


@given(rows=st.dictionaries(st.text(max_size=3), SCORES, max_size=4), most=st.integers(0, 20))
def test_interleaving_returns_each_row_once_and_keeps_order(rows: dict[str, list[float]], most: int) -> None:
    ranked = {name: sorted(scores, reverse=True) for name, scores in rows.items()}
    joined = interleave(ranked, most)
    assert len(joined) == len(set(joined)) == min(most, sum(map(len, ranked.values())))
    scores = [ranked[name][row] for name, row in joined]
    assert scores == sorted(scores, reverse=True)
    for name in ranked:
        own = [row for vault, row in joined if vault == name]
        assert own == list(range(len(own)))


def test_rows_without_scores_are_taken_from_vaults_in_turn() -> None:
    assert interleave({"a": [0.0, 0.0], "b": [0.5, 0.0]}, 4) == [("b", 0), ("a", 0), ("a", 1), ("b", 1)]


def test_project_of_a_request_reaches_each_vault() -> None:
    """The token has a principal in each vault, but only the request names the project (projects §2)."""
    parts = (("work", Principal("bot", "read")), ("home", Principal("bot", "write")))
    who = evolve(JointPrincipal("bot", "write", parts=parts), project="shop", session="s1")
    vaults: Any = {name: SimpleNamespace(name=name) for name, _ in parts}
    found = [part for _, part in VaultSet(vaults, "work").allowed(who)]
    assert [(part.rights, part.project, part.session) for part in found] == [
        ("read", "shop", "s1"),
        ("write", "shop", "s1"),
    ]
