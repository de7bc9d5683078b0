"""Lead coverage, compared with manually computed numbers (behaviour 263), and its packed format."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.search.ranking.lead_coverage import LEADING, MOST_STEMS, Covered, LeadText, lead_coverage
from lithos.search.ranking.ranking import LED, add_lead

IDF = {"trio": 3.0, "actor": 1.0}


def text(*passages: str) -> LeadText:
    return LeadText.of([passage.split() for passage in passages])


def coverage(*notes: LeadText, idf: dict[str, float] = IDF) -> list[float]:
    return [covered.coverage for covered in lead_coverage(notes, idf)]


def test_word_weight_is_its_idf_and_halves_after_25_positions() -> None:
    """behaviour 263: lead = (3 / 1 + 1 / (1 + 25/25)) / 4 = 0.875, for the note and for its only passage."""
    words = ["trio", *["x"] * 24, "actor", "trio"]
    assert coverage(text(" ".join(words))) == [pytest.approx(0.875)]


def test_note_and_its_best_passage_have_equal_weight() -> None:
    """behaviour 263: in the note, trio is at position 5 and actor at position 6.

    In the second passage, trio is at position 0 and actor at position 1.

    Note: (3 / 1.2 + 1 / 1.24) / 4 = 0.826613. Passage: (3 + 1 / 1.04) / 4 = 0.990385.
    """
    (value,) = coverage(text("a b c d e", "trio actor", "actor"))
    assert value == pytest.approx(0.5 * 0.8266129 + 0.5 * 0.9903846)


def test_scores_of_passages_are_not_added_up() -> None:
    """behaviour 263: each passage has one of the two words, and the note has both words."""
    (value,) = coverage(text("trio", "actor"))
    assert value == pytest.approx(0.5 * (3 + 1 / 1.04) / 4 + 0.5 * 0.75)


def test_only_the_first_128_stems_of_a_note_count() -> None:
    """behaviour 263"""
    filler = ["x"] * (LEADING - 1)
    (inside,) = coverage(LeadText.of([[*filler, "trio"]]), idf={"trio": 1.0})
    (outside,) = coverage(LeadText.of([[*filler, "x", "trio"]]), idf={"trio": 1.0})
    assert inside == pytest.approx(1 / (1 + 127 / 25))
    assert outside == pytest.approx(0.5 / (1 + 128 / 25))


def test_query_of_one_word_or_no_word_is_scored() -> None:
    """behaviour 263: if the only word of the query is at the first position, the coverage is 1."""
    assert coverage(text("trio"), text("x y"), text(), idf={"trio": 0.7}) == [1.0, 0.0, 0.0]
    assert coverage(text("trio"), idf={}) == [0.0]
    assert coverage() == []


def test_notes_without_stems_do_not_shift_results_of_other_notes() -> None:
    assert coverage(text(), text("actor"), text(), text("trio"), text("")) == [
        0.0, pytest.approx(0.25), 0.0, pytest.approx(0.75), 0.0,
    ]  # fmt: skip


def test_empty_first_passage_marks_a_note_without_own_text() -> None:
    """All other values are the same as without the empty passage."""
    one, other = lead_coverage([LeadText.of([["trio", "x"]]), LeadText.of([[], ["trio", "x"]])], IDF)
    assert (one.bare, other.bare) == (0, 1)
    assert one[:-1] == pytest.approx(other[:-1])


passages = st.lists(st.lists(st.sampled_from(["trio", "actor", "x"]), max_size=40), max_size=5)


STEMS = [f"stem{number}" for number in range(18)]
NOTES = st.lists(st.lists(st.lists(st.sampled_from([*STEMS, "other"]), max_size=60), max_size=5), max_size=6)


@given(notes=NOTES, count=st.integers(1, len(STEMS)))
def test_batch_coverage_matches_the_formula_for_each_note(notes: list[list[list[str]]], count: int) -> None:
    idf = {stem: 1.0 + number / 7 for number, stem in enumerate(STEMS[:count])}
    covered = lead_coverage([LeadText.of(passages) for passages in notes], idf)
    assert len(covered) == len(notes)
    for passages, found in zip(notes, covered, strict=True):
        assert found == pytest.approx(_covered(passages, idf))


def _covered(passages: list[list[str]], idf: dict[str, float]) -> Covered:
    stems = [stem for passage in passages for stem in passage]
    total = sum(idf.values())
    lead = _lead(stems[:LEADING], idf) / total
    best = max((_lead(passage, idf) / total for passage in passages), default=0.0)
    had = [stem for stem in idf if stem in stems]
    return Covered(
        coverage=0.5 * lead + 0.5 * best,
        lead=lead,
        passage=best,
        share=sum(idf[stem] for stem in had) / total,
        words=len(had) / len(idf),
        bare=float(bool(stems) and not passages[0]),
    )


def _lead(stems: list[str], idf: dict[str, float]) -> float:
    return sum(weight / (1 + stems.index(stem) / 25) for stem, weight in idf.items() if stem in stems)


@given(passages)
def test_packed_stems_are_unpacked_unchanged(note: list[list[str]]) -> None:
    packed = LeadText.of(note)
    again = LeadText.unpack(packed.pack())
    assert again.stems.tolist() == packed.stems.tolist()
    assert again.lengths.tolist() == packed.lengths.tolist()


@pytest.mark.parametrize("damaged", [b"", b"\1\0\0\0", b"\1\0\0\0\2\0\0\0\5\0\0\0"])
def test_damaged_stem_bytes_are_refused(damaged: bytes) -> None:
    if damaged:
        with pytest.raises(ValueError, match="not packed stems"):
            LeadText.unpack(damaged)
    else:
        assert not len(LeadText.unpack(damaged).stems)


def test_stored_stems_of_a_long_note_are_limited() -> None:
    long = LeadText.of([["x"] * 1_000] * 40)
    assert len(long.stems) == MOST_STEMS
    assert int(long.lengths.sum()) == MOST_STEMS


def test_best_60_hits_are_ordered_by_score_and_lead_coverage() -> None:
    """behaviour 263: 0.6 + 0.5 x 1 is above 0.9 + 0.5 x 0.2. Scores are divided by 1.5."""
    fused = [(1, 0.9), (2, 0.6), *((n, 0.5 - n / 1000) for n in range(3, LED + 3))]
    best, rest = add_lead(iter(fused), lambda keys: {1: 0.2, 2: 1.0, 3: 0.0}, 0.5)
    assert len(best) == LED
    led = [*best, *rest]
    assert led[:2] == [(2, pytest.approx(1.1 / 1.5)), (1, pytest.approx(1.0 / 1.5))]
    assert [key for key, _ in led[2:]] == [key for key, _ in fused[2:]]
    assert len(led) == len(fused)
    scores = [score for _, score in led]
    assert scores == sorted(scores, reverse=True)


def test_lead_coverage_is_not_read_when_its_weight_is_zero() -> None:
    fused = [(1, 0.9), (2, 0.6)]

    def refuse(keys: list[int]) -> dict[int, float]:
        raise AssertionError(keys)

    best, rest = add_lead(iter(fused), refuse, 0.0)
    assert [*best, *rest] == fused
