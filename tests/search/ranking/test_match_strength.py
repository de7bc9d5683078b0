"""Match strength, compared with manually computed numbers (behaviours 264, 265)."""

from __future__ import annotations

import math

import attrs
import pytest

from lithos.search.ranking.lead_coverage import Covered
from lithos.search.ranking.match_strength import (
    CALIBRATIONS,
    MEANING_CALIBRATIONS,
    Calibration,
    Features,
    LexicalLeg,
    MatchSignals,
    MeaningFeatures,
    above,
    meaning_features,
    probability,
    semantic_margins,
    spread,
    strength,
)

NOTHING = Features(**dict.fromkeys(attrs.fields_dict(Features), 0.0))


def test_probability_is_the_logistic_function_of_weighted_features() -> None:
    """search §6: 1 / (1 + exp(-(-1 + 2 x 0.5 + 4 x 0.25)))."""
    rule = Calibration(intercept=-1.0, weights={"above": 2.0, "margin": 4.0}, threshold=0.5)
    features = attrs.evolve(NOTHING, above=0.5, margin=0.25)
    assert probability(features, rule) == pytest.approx(1 / (1 + math.exp(-1)))
    assert probability(NOTHING, rule) == pytest.approx(1 / (1 + math.e))


@pytest.mark.parametrize("size", [1e300, -1e300])
def test_extreme_features_still_yield_a_probability(size: float) -> None:
    rule = Calibration(intercept=0.0, weights={"above": 1.0}, threshold=0.5)
    assert 0 <= probability(attrs.evolve(NOTHING, above=size), rule) <= 1


@pytest.mark.parametrize("tier", sorted(CALIBRATIONS))
def test_calibration_tables_have_known_features_and_a_threshold(tier: str) -> None:
    for rule, of_candidate in ((CALIBRATIONS[tier], Features), (MEANING_CALIBRATIONS[tier], MeaningFeatures)):
        assert rule.weights.keys() == attrs.fields_dict(of_candidate).keys()
        assert 0.3 < rule.threshold < 1


def test_semantic_row_features_are_margins_and_word_shares() -> None:
    """search §6: margins to the next, tenth and thirtieth row, and the passage compared with two others."""
    found = [(serial, 0.9 - serial / 50) for serial in range(40)]
    covered = {0: Covered(0.5, 0.4, 0.6, 0.7, 0.8), 1: Covered(passage=0.25), 2: Covered(passage=0.75)}
    features = meaning_features(found, 3, covered, 0.0)
    assert [*features] == [0, 1, 2]
    assert attrs.asdict(features[0]) == pytest.approx(
        {
            "cosine": 0.9, "nearest": 0.9, "ahead": 0.02, "margin": 0.02, "depth": 9 / 50, "share": 0.7,
            "words": 0.8, "lead": 0.4, "passage": 0.6, "passage_ahead": -0.15, "crowd": 0.9 - 29 / 50,
            "length": math.log(3),
        }
    )  # fmt: skip
    assert features[2].passage_ahead == pytest.approx(0.15)


def test_threshold_replaces_the_missing_row_after_the_last_row() -> None:
    features = meaning_features([(7, 0.8), (5, 0.5)], 0, {5: Covered()}, 0.3)
    assert [*features] == [5], "nothing is known of the words of the other"
    assert (features[5].margin, features[5].depth, features[5].length) == pytest.approx((0.2, 0.2, 0.0))
    assert meaning_features([], 1, {}, 0.3) == {}


@pytest.mark.parametrize(
    ("chance", "expected"),
    [(None, "weak"), (0.0, "weak"), (0.129, "weak"), (0.13, "fair"), (0.789, "fair"), (0.79, "strong")],
)
def test_match_strength_follows_the_probability(chance: float | None, expected: str) -> None:
    """behaviour 265"""
    assert strength(chance, 0.79) == expected


def test_row_without_a_hit_is_weak_even_at_low_threshold() -> None:
    assert [strength(chance, 0.1) for chance in (0.05, 0.1, 0.2)] == ["weak", "strong", "strong"]


def test_lexical_features_use_the_idf_of_unknown_words_as_unit() -> None:
    """search §6: shares of the idf of all stems, divided by the idf of an unknown stem."""
    leg = LexicalLeg(scores={1: 4.4}, idf={"trio": 2.0, "actor": 2.0, "zyx": 4.0}, unknown=4.0)
    assert leg.held(0.25) == pytest.approx(math.log(0.1 + 0.25 * 8 / 4))
    assert leg.held(0.0) == pytest.approx(math.log(0.1))
    assert leg.missing(0.25) == pytest.approx(1.5)
    assert leg.missing(1.0) == 0.0
    common = LexicalLeg(scores={1: 0.4}, idf={"trio": 0.2}, unknown=0.7)
    assert common.held(0.5) == pytest.approx(math.log(0.1 + 0.5))
    none = LexicalLeg(scores={}, idf={}, unknown=0.7)
    assert (none.held(0.0), none.missing(0.0)) == (pytest.approx(math.log(0.1)), 0.0)


def test_margin_skips_rows_with_the_same_content() -> None:
    """search §6: if two notes contain the same answer, both are answers."""
    row, twin, other = (
        MatchSignals(0.9, 0.7, 0.5),
        MatchSignals(0.85, 0.72, 0.46),
        MatchSignals(0.6, 0.7, 0.4),
    )
    assert row.margin([twin, other]) == pytest.approx(0.3)
    assert row.margin([other]) == pytest.approx(0.3)
    assert row.margin([MatchSignals(0.8, 0.6, 0.5)]) == pytest.approx(0.1)
    assert row.margin([MatchSignals(0.1, 0.0, 0.0)]) == row.margin([twin]) == row.margin([]) == 0.5


def test_similarity_is_measured_against_the_spread_of_thirty_nearest_notes() -> None:
    mean, deviation = spread([0.9, 0.7, *[0.5] * 28, *[0.0] * 50], 0.3)
    assert (mean, deviation) == (pytest.approx(0.52), pytest.approx(math.sqrt(0.188 / 30)))
    assert above(0.9, 0.52, 0.07) == pytest.approx(3.8)
    assert above(0.0, 0.52, 0.07) == 0.0


def test_spread_treats_lower_similarities_as_equal_to_the_threshold() -> None:
    """A vault with one note therefore has a spread as well."""
    assert spread([], 0.3) == (pytest.approx(0.3), pytest.approx(0.0))
    assert spread([0.9], 0.3) == (pytest.approx(0.32), pytest.approx(math.sqrt(0.348 / 30)))


def test_nearest_note_is_compared_with_second_note_or_threshold() -> None:
    assert semantic_margins({1: 0.7}, 0.3) == (0.7, pytest.approx(0.4))
    assert semantic_margins({1: 0.7, 2: 0.6}, 0.3) == (0.7, pytest.approx(0.1))
    assert semantic_margins({}, 0.3) == (0.0, 0.0)
