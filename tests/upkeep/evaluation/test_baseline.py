"""Baselines: compared values, the definition of "worse", and invalid files."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from lithos.upkeep.evaluation.model_baseline import (
    LARGEST_BASELINE,
    Baseline,
    QuestionResult,
    UnusableBaseline,
    compare,
    read_baseline,
)

DEPTH = 10


def outcome(rank: int | None, question: str = "a", **more: Any) -> QuestionResult:
    return QuestionResult(question=question, expect=("x.md",), within=5, rank=rank, **more)


def baseline(*outcomes: QuestionResult, depth: int = DEPTH) -> Baseline:
    return Baseline(mode="hybrid", k=5, depth=depth, version="1", saved_at="now", outcomes=outcomes)


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        (outcome(1), outcome(1), None),
        (outcome(1), outcome(2), "worse"),
        (outcome(3), outcome(2), "better"),
        (outcome(3), outcome(None), "worse"),
        (outcome(None), outcome(9), "better"),
        (outcome(None), outcome(None), None),
        (outcome(2), outcome(1, forbidden_rank=2), "worse"),
        (outcome(2, forbidden_rank=1), outcome(2), "better"),
        (outcome(2, forbidden_rank=1), outcome(3), "worse"),
        (outcome(2, forbidden_rank=1), outcome(2, forbidden_rank=3), None),
    ],
)
def test_lower_rank_or_forbidden_note_counts_as_worse(
    before: QuestionResult, now: QuestionResult, kind: str | None
) -> None:
    """Behaviour 234."""
    compared = compare(baseline(before), [now], DEPTH)
    assert [each.kind for each in compared.changes] == ([kind] if kind else [])
    assert compared.same == (0 if kind else 1)


def test_changed_search_depth_is_not_reported_as_a_change() -> None:
    assert compare(baseline(outcome(30), depth=50), [outcome(None)], 10).same == 1
    assert compare(baseline(outcome(None), depth=10), [outcome(30)], 50).same == 1


def test_question_in_only_one_file_is_named_but_not_compared() -> None:
    """Behaviour 234."""
    compared = compare(
        baseline(outcome(1, "gone"), outcome(1, "both"), outcome(1, "asked otherwise")),
        [
            outcome(1, "both"),
            outcome(None, "new"),
            attrs.evolve(outcome(None, "asked otherwise"), expect=("y",)),
        ],
        DEPTH,
    )
    assert (compared.only_before, compared.only_now) == (("gone",), ("new",))
    assert (compared.changed, compared.changes, compared.same) == (("asked otherwise",), (), 1)


def test_written_baseline_can_be_read_back() -> None:
    saved = baseline(outcome(3, "ä\x1b", forbidden_rank=1, tags=("t",), mode="fulltext"), outcome(None))
    text = saved.encode()
    assert read_baseline(text.encode()) == saved
    assert text.isascii()
    assert text.count("\n") == 4


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "not written by --save"),
        (b'{"a": 1}', "not written by --save"),
        (b'{"lithos_baseline": 9}', "another version"),
        (b'{"lithos_baseline": 1}', "missing or has the wrong type"),
        (baseline(outcome(1)).encode().replace('"rank": 1', '"rank": "1"').encode(), "wrong type"),
        (baseline(outcome(1)).encode().replace('"rank": 1', '"rank": 0').encode(), "wrong type"),
        (baseline(outcome(1)).encode().replace('["x.md"]', '"x.md"').encode(), "wrong type"),
        (baseline(outcome(1)).encode()[:-20].encode(), "not valid JSON"),
        (baseline(outcome(1)).encode().replace('"rank": 1', f'"rank": {"9" * 4_000}').encode(), "wrong type"),
        (baseline(outcome(1)).encode().replace("x.md", "\\ud800").encode(), "half of a character"),
        (b" " * (LARGEST_BASELINE + 1), "more than"),
    ],
)
def test_invalid_baseline_is_refused(content: bytes, told: str) -> None:
    with pytest.raises(UnusableBaseline, match=told):
        read_baseline(content)
