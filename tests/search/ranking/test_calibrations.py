"""The fitted values of each embedding model: no table lacks a model."""

from __future__ import annotations

import pytest

from lithos.search.ranking.calibrations import ACCURATE, MULTILINGUAL, STATIC
from lithos.search.ranking.match_strength import CALIBRATIONS, MEANING_CALIBRATIONS
from lithos.search.ranking.prompt_match import PROMPT_CALIBRATIONS
from lithos.search.service.hybrid import SEMANTIC_WEIGHTS
from lithos.search.service.similarity_floors import LEAST_OF_MODEL


@pytest.mark.parametrize(
    "table", [CALIBRATIONS, MEANING_CALIBRATIONS, PROMPT_CALIBRATIONS, SEMANTIC_WEIGHTS, LEAST_OF_MODEL]
)
def test_every_table_has_values_for_every_model(table: dict[str, object]) -> None:
    assert set(table) == {STATIC, ACCURATE, MULTILINGUAL}


def test_multilingual_model_has_its_own_values() -> None:
    for table in (CALIBRATIONS, MEANING_CALIBRATIONS, SEMANTIC_WEIGHTS):
        assert table[MULTILINGUAL] != table[ACCURATE]
