"""Suggestion of the note that a broken link probably means (behaviour 288)."""

from __future__ import annotations

import pytest

from lithos.kernel.values.findings import NamedNote
from lithos.upkeep.model.likely_targets import LikelyNotes


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ("wind-station", "Wind stations"),
        ("ops/Databse backup.md", "Database backup"),
        ("ferry time#monday", "Ferry times"),
        ("Cellar pumps", "Pump"),
        ("Roof", None),
        ("", None),
    ],
)
def test_likely_target_has_a_spelling_similar_to_the_link(target: str, meant: str | None) -> None:
    likely = LikelyNotes()
    for names in (
        ("Wind stations",),
        ("Database backup",),
        ("Ferry times",),
        ("Ferry tickets",),
        ("Pump", "cellar pump"),
    ):
        likely.add(NamedNote(names[0], names[0], f"{names[0]}.md"), names)
    found = likely.find(target)
    assert (None if found is None else found.title) == meant
