"""Where places of attachments stand among the rows of notes (docs/spec/attachments.md §2)."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lithos.core.attachments.mixing import MOST_MIXED, Standing, mix


def notes(*matches: str) -> list[Standing]:
    return [Standing(match, 1 - place / 20) for place, match in enumerate(matches)]


def shown(rows: list) -> str:
    return "".join("n" if row.is_note else "a" for row in rows)


def test_a_place_stands_behind_the_notes_that_match_as_well_and_before_all_others():
    ten = notes("strong", "fair", "weak", *["weak"] * 7)
    assert shown(mix(ten, [Standing("strong", 0.9)], 10)) == "nannnnnnnn"
    assert shown(mix(ten, [Standing("fair", 0.9)], 10)) == "nnannnnnnn"
    assert shown(mix(notes(*["weak"] * 10), [Standing("fair", 0.9)], 10)) == "annnnnnnnn"


def test_a_note_that_matches_better_further_down_is_not_passed():
    assert shown(mix(notes("weak", "strong", "weak"), [Standing("strong", 1.0)], 10)) == "nnan"


def test_three_of_ten_rows_are_no_notes_at_most_unless_notes_leave_places():
    many = [Standing("strong", 0.9)] * 5
    assert shown(mix(notes(*["weak"] * 10), many, 10)).count("a") == MOST_MIXED
    assert shown(mix(notes("weak"), [Standing("weak", 0.5)] * 5, 10)) == "naaaaa"


def test_weak_places_take_the_last_row_of_a_full_page_alone():
    assert shown(mix(notes(*["weak"] * 10), [Standing("weak", 0.9)] * 3, 10)) == "n" * 9 + "a"
    assert shown(mix(notes(*["weak"] * 10), [Standing(None, 0.9)] * 3, 10)) == "n" * 9 + "a"


def test_one_row_is_the_best_one_whatever_it_is():
    assert shown(mix(notes("strong"), [Standing("strong", 1.0)], 1)) == "n"
    assert shown(mix(notes("weak"), [Standing("strong", 1.0)], 1)) == "a"
    assert shown(mix(notes("weak"), [Standing("weak", 1.0)], 1)) == "n"


def test_without_places_the_notes_are_as_they_were():
    ten = notes(*["weak"] * 10)
    rows = mix(ten, [], 10)
    assert [row.number for row in rows] == list(range(10))
    assert [row.score for row in rows] == [each.score for each in ten]


standings = st.lists(
    st.builds(Standing, st.sampled_from(["strong", "fair", "weak", None]), st.floats(0, 1)), max_size=15
)


@given(standings, standings, st.integers(1, 12))
def test_rows_keep_both_orders_and_scores_never_rise(of_notes, others, limit):
    of_notes = sorted(of_notes, key=lambda each: -each.score)
    rank = {"strong": 2, "fair": 1, "weak": 0, None: 0}
    others = sorted(others, key=lambda each: -rank[each.match])
    rows = mix(of_notes, others, limit)
    assert len(rows) <= limit
    assert [row.number for row in rows if row.is_note] == list(range(sum(row.is_note for row in rows)))
    scores = [row.score for row in rows]
    assert all(later <= earlier for earlier, later in pairwise(scores))
    assert all(row.score == of_notes[row.number].score for row in rows if row.is_note)
    if len(of_notes) + len(others) >= limit:
        assert len(rows) == limit
