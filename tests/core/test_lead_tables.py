"""Lead coverage in passes over all stems together is what its formula says of one note after the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.core.learning.lead import _FEW_STEMS, LEADING, Covered, LeadText, lead_coverage

STEMS = [f"stem{number}" for number in range(3 * _FEW_STEMS)]
NOTES = st.lists(st.lists(st.lists(st.sampled_from([*STEMS, "other"]), max_size=60), max_size=5), max_size=6)


@given(notes=NOTES, count=st.integers(1, len(STEMS)))
def test_many_notes_and_stems_together_are_covered_as_each_alone(notes, count):
    """Few stems are looked for one by one, many in a table."""
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
    )


def _lead(stems: list[str], idf: dict[str, float]) -> float:
    return sum(weight / (1 + stems.index(stem) / 25) for stem, weight in idf.items() if stem in stems)
