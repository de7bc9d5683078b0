"""Ranks of attachment hits among note rows (docs/spec/attachments.md §2)."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lithos.search.ranking.mixing import MOST_MIXED, SLIGHT, MixCandidate, mix


def notes(*chances: float | None, of: int = 10) -> list[MixCandidate]:
    """Return `of` note candidates. Candidates after the given `chances` have a probability of 0."""
    first = [MixCandidate(chance, 1 - place / 20) for place, chance in enumerate(chances)]
    return first + [MixCandidate(0.0, 1 - place / 20) for place in range(len(first), of)]


def shown(rows: list) -> str:
    return "".join("n" if row.is_note else "a" for row in rows)


def test_attachment_hit_ranks_before_clearly_less_likely_notes():
    ten = notes(0.8, 0.4, 0.1)
    assert shown(mix(ten, [MixCandidate(0.9, 0.9)], 10)) == "nannnnnnnn"
    assert shown(mix(ten, [MixCandidate(0.5, 0.9)], 10)) == "nnannnnnnn"
    assert shown(mix(ten, [MixCandidate(0.1, 0.9)], 10)) == "nnnannnnnn"
    assert shown(mix(notes(0.01, 0.01, 0.01), [MixCandidate(0.1, 0.9)], 10)) == "annnnnnnnn"


def test_hit_does_not_overtake_a_good_note_further_down():
    assert shown(mix(notes(0.1, 0.8, 0.1, of=3), [MixCandidate(0.9, 1.0)], 10)) == "nnan"


def test_at_most_three_of_ten_rows_are_attachments():
    many = [MixCandidate(0.9, 0.9)] * 5
    assert shown(mix(notes(), many, 10)).count("a") == MOST_MIXED
    assert shown(mix(notes(0.1, of=1), [MixCandidate(0.01, 0.5)] * 5, 10)) == "naaaaa"


def test_unlikely_hits_are_placed_in_the_last_two_rows():
    assert shown(mix(notes(), [MixCandidate(SLIGHT, 0.9)] * 3, 10)) == "n" * 8 + "aa"
    assert shown(mix(notes(), [MixCandidate(SLIGHT, 0.9)], 10)) == "n" * 9 + "a"
    assert shown(mix(notes(2 * SLIGHT), [MixCandidate(SLIGHT, 0.9)] * 3, 10)) == "n" * 10
    assert shown(mix(notes(), [MixCandidate(SLIGHT / 2, 0.9)] * 3, 10)) == "n" * 10
    assert shown(mix(notes(of=5), [MixCandidate(SLIGHT, 0.9)] * 3, 5)) == "n" * 5


def test_hits_of_unknown_strength_fill_rows_left_by_notes():
    assert shown(mix(notes(), [MixCandidate(None, 0.9)] * 3, 10)) == "n" * 10
    assert shown(mix(notes(of=8), [MixCandidate(None, 0.9)] * 3, 10)) == "n" * 8 + "aa"


def test_hits_rank_after_notes_of_unknown_strength():
    unknown = [MixCandidate(None, 0.5)] * 10
    assert shown(mix(unknown, [MixCandidate(0.9, 0.9)] * 3, 10)) == "n" * 8 + "aa"


def test_single_row_is_the_likeliest_note_or_attachment():
    assert shown(mix(notes(0.8), [MixCandidate(0.9, 1.0)], 1)) == "n"
    assert shown(mix(notes(0.1), [MixCandidate(0.9, 1.0)], 1)) == "a"
    assert shown(mix(notes(0.1), [MixCandidate(0.01, 1.0)], 1)) == "n"


def test_notes_are_unchanged_without_attachment_hits():
    ten = notes(0.5)
    rows = mix(ten, [], 10)
    assert [row.number for row in rows] == list(range(10))
    assert [row.score for row in rows] == [each.score for each in ten]


standings = st.lists(st.builds(MixCandidate, st.none() | st.floats(0, 1), st.floats(0, 1)), max_size=15)


@given(standings, standings, st.integers(1, 12))
def test_hits_appear_once_and_notes_keep_order_and_scores(of_notes, others, limit):
    of_notes = sorted(of_notes, key=lambda each: -each.score)
    rows = mix(of_notes, others, limit)
    assert len(rows) == min(limit, len(of_notes) + len(others))
    assert [row.number for row in rows if row.is_note] == list(range(sum(row.is_note for row in rows)))
    places = [row.number for row in rows if not row.is_note]
    assert len(set(places)) == len(places)
    if len(of_notes) >= limit:
        assert len(places) <= max(1, limit * MOST_MIXED // 10)
    scores = [row.score for row in rows]
    assert all(later <= earlier for earlier, later in pairwise(scores))
    assert all(row.score == of_notes[row.number].score for row in rows if row.is_note)


def test_image_ranks_after_every_note() -> None:
    """behaviour 381"""
    image = MixCandidate(1.0, 1.0, leads=False)
    for many in (1, 3, 9):
        assert shown(mix(notes(0.01, of=many), [image], 10)) == "n" * many + "a"
    assert shown(mix(notes(0.01), [image] * 3, 10)) == "n" * 8 + "aa"
    assert shown(mix(notes(0.01, of=5), [image], 5)) == "n" * 5
    assert shown(mix(notes(0.01, 0.01, of=5), [MixCandidate(0.9, 0.9), image], 10)) == "annnnna"
