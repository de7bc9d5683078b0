"""Formulas of remembered questions, compared with values calculated by hand."""

from __future__ import annotations

from random import Random

import pytest

from lithos.memory.model.questions import (
    SHARE_KEPT,
    SKETCHED,
    MatrixEntry,
    digest_question,
    entry_weight,
    evidence,
    final_score,
    kernel,
    learn,
    share_kept,
    sketch_of,
    threshold,
)


@pytest.mark.parametrize(
    ("cosine", "highest", "expected"),
    [
        (0.9, 0.2, 0.75),  # (0.9 - 0.6) / 0.4
        (0.9, 0.8, 0.5),  # (0.9 - 0.8) / 0.2
        (0.8, 0.8, 0.0),
        (0.6, 0.0, 0.0),
        (0.2, 0.0, 0.0),
        (1.0, 0.9, 1.0),
        (1.0, 1.0, 0.0),  # a passage equals the question, so no question can be nearer
        (float("nan"), 0.0, 0.0),
    ],
)
def test_kernel_measures_how_much_a_question_beats_every_passage(
    cosine: float, highest: float, expected: float
) -> None:
    """behaviour 267"""
    assert kernel(cosine, threshold(highest)) == pytest.approx(expected)


def test_entry_weight_and_evidence_follow_the_formula() -> None:
    """behaviour 267"""
    assert entry_weight(1, 0) == pytest.approx(0.4)
    assert entry_weight(2, 0.5) == pytest.approx(0.5)
    assert entry_weight(0, 3) == entry_weight(0, 0) == 0
    # 1 - (1 - 0.4 x 0.75)(1 - 0.5 x 0.2) = 1 - 0.7 x 0.9
    assert evidence([(0.4, 0.75), (0.5, 0.2)]) == pytest.approx(0.37)
    assert evidence([]) == 0
    assert final_score(0.5, 0.37) == pytest.approx(0.796)
    assert final_score(0.5, 0.37, trust=0.7) == pytest.approx(0.5572)


def test_feedback_changes_each_memory_entry_as_specified() -> None:
    """behaviour 267"""
    before = [
        MatrixEntry("cited", True, 1.0, a=1.0),  # the same question of the cited note: a + 1
        MatrixEntry("cited", False, 0.8, a=1.0),  # a similar question of the cited note: a + 0.5 x 0.8
        MatrixEntry("cited", False, 0.0, a=1.0),  # an unrelated question of the cited note: unchanged
        MatrixEntry("shown", False, 0.5, a=1.0),  # a similar question, shown but not cited: b + 0.3 x 0.5
        MatrixEntry("shown", True, 1.0, a=1.0),  # the same question, and the note was shown but not cited
        MatrixEntry("wrong", False, 0.5, a=2.0, b=1.0),  # b + 0.3 x 0.5 and + 0.5
        MatrixEntry("new", True, 1.0),
    ]
    after = list(learn(before, ["cited", "shown", "wrong", "new"], ["cited", "new"], ["wrong"]))
    assert [(each.a, each.b) for each in after] == [
        pytest.approx(pair) for pair in [(2, 0), (1.4, 0), (1, 0), (1, 0.15), (1, 0.3), (2, 1.65), (1, 0)]
    ]


def test_feedback_without_citations_changes_only_misleading_notes() -> None:
    """behaviour 267"""
    before = [MatrixEntry("a", False, 0.5, a=1.0), MatrixEntry("b", False, 0.5, a=1.0)]
    assert list(learn(before, ["a", "b"], [], [])) == before
    after = list(learn(before, ["a", "b"], [], ["b"]))
    assert [(each.a, each.b) for each in after] == [(1, 0), (1, 0.5)]


def test_feedback_keeps_counts_and_evidence_within_their_bounds() -> None:
    random = Random(7)
    for _ in range(300):
        entries = [
            MatrixEntry(random.choice("abcde"), random.random() < 0.2, random.random(), *_counts(random))
            for _ in range(random.randrange(12))
        ]
        cited, misleading = (random.sample("abcde", random.randrange(4)) for _ in range(2))
        after = list(learn(entries, list("abcde"), cited, misleading))
        for old, new in zip(entries, after, strict=True):
            assert (new.note_id, new.is_asked, new.k) == (old.note_id, old.is_asked, old.k)
            assert old.a <= new.a <= old.a + 1
            assert old.b <= new.b <= old.b + 1.3
            if old.note_id not in cited:
                assert entry_weight(new.a, new.b) <= entry_weight(old.a, old.b)
            elif old.note_id not in misleading:
                assert entry_weight(new.a, new.b) >= entry_weight(old.a, old.b)
        value = evidence((entry_weight(each.a, each.b), each.k) for each in after)
        assert 0 <= value < 1


def _counts(random: Random) -> tuple[float, float]:
    return random.choice([0.0, random.uniform(0, 50)]), random.choice([0.0, random.uniform(0, 50)])


TEXT = " ".join(f"word{number}" for number in range(400))


@pytest.mark.parametrize("replaced", [0.0, 0.2, 0.35, 0.65, 0.8, 1.0])
def test_sketch_estimates_the_remaining_share_of_a_text(replaced: float) -> None:
    """behaviour 268"""
    words = TEXT.split()
    Random(3).shuffle(words)
    new = [f"other{number}" for number in range(int(replaced * 400))]
    kept = share_kept(sketch_of(TEXT), " ".join(words[len(new) :] + new))
    assert kept == pytest.approx(1 - replaced, abs=0.1)
    assert (kept < SHARE_KEPT) == (replaced > 0.5)


def test_sketch_is_small_and_ignores_order_case_and_function_words() -> None:
    sketch = sketch_of(TEXT)
    assert len(sketch) == 4 * SKETCHED
    assert sketch_of("Bread and the Butter") == sketch_of("butter, BREAD; bread")
    assert share_kept(sketch, TEXT + "\n\n" + "much more of something else " * 500) == 1
    assert share_kept(b"", "anything") == share_kept(sketch_of("the of and"), "") == 1
    assert share_kept(sketch_of("one"), "") == 0
    assert len(sketch_of("\ud800 語 " + "x" * 1_000_000)) <= 4 * SKETCHED


def test_questions_with_equal_text_are_equal() -> None:
    assert digest_question("a") == digest_question("a") != digest_question("a ")
    assert len(digest_question("\ud800" * 100_000)) == 32
