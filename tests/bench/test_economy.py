"""Costs of answers for agents, which must not grow unnoticed (`bench/economy.json`)."""

from __future__ import annotations

import json

import pytest

from bench.economy import KEPT, measure_kept, worse

BEFORE = {"search 10": {"characters": 1_000.0, "of_notes": 80.0}, "within 4000": {"evidence": 50.0}}


def test_economy_figures_within_the_margin_pass() -> None:
    now = {"search 10": {"characters": 1_019.0, "of_notes": 79.0}, "within 4000": {"evidence": 49.0}}
    assert worse(now, BEFORE) == []
    assert worse(BEFORE | {"more": {"characters": 1.0}}, BEFORE) == []


def test_worse_economy_figures_are_named() -> None:
    now = {"search 10": {"characters": 1_021.0, "of_notes": 78.0}}
    assert [each.split(" ")[0:3] for each in worse(now, BEFORE)] == [
        ["search", "10:", "characters"],
        ["search", "10:", "of_notes"],
        ["within", "4000:", "evidence"],
    ]


@pytest.mark.slow
def test_answers_cost_no_more_than_the_recorded_figures() -> None:
    """To raise the figures deliberately, run `python -m bench.economy --keep`."""
    assert worse(measure_kept(), json.loads(KEPT.read_text(encoding="utf-8"))) == []
