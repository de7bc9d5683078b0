"""Salience and usage of a note, calculated from its counters."""

from __future__ import annotations

import pytest

from lithos.memory.model.memory import NodeStats
from lithos.memory.model.salience import blame, cite, ignore, pairs_within, salience_of, usage_of
from tests.fakes import START


@pytest.mark.parametrize(
    ("cited", "misleading", "ignored", "salience"),
    [
        (0, 0, 0, 0.5),
        (1, 0, 0, 0.52),
        (0, 1, 0, 0.45),
        (3, 2, 4, 0.46),
        (0, 0, 5, 0.5),
        (0, 0, 8, 0.44),
        (7, 0, 7, 0.64),
        (7, 0, 9, 0.6),
        (99, 0, 0, 1.0),
        (0, 99, 0, 0.0),
    ],
)
def test_salience_is_calculated_from_counters(
    cited: int, misleading: int, ignored: int, salience: float
) -> None:
    """behaviours 148, 153"""
    stats = NodeStats(
        node_id="n", cited_count=cited, misleading_count=misleading, ignored_count=ignored, retrieval_count=9
    )
    assert salience_of(stats) == pytest.approx(salience)


def test_feedback_updates_counters_and_time_of_last_use() -> None:
    """behaviour 153"""
    stats = ignore(blame(cite(NodeStats(node_id="n"), START)))
    assert stats == NodeStats(
        node_id="n", cited_count=1, misleading_count=1, ignored_count=1, last_used_at=START
    )


def test_usage_grows_with_up_to_twenty_retrievals() -> None:
    used = [usage_of(NodeStats(node_id="n", retrieval_count=count)) for count in (0, 1, 20, 500)]
    assert used == pytest.approx([0, 0.227670, 1, 1], abs=1e-6)


def test_pairs_contain_only_notes_of_the_same_namespace() -> None:
    spaces = {"a": "n", "b": "n", "c": "m"}
    assert pairs_within(["c", "b", "a", "b", "unknown"], spaces) == [("a", "b", "n")]
