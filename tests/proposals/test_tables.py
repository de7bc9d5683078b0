"""Proposal tables of `coordination.db`, which exist only if the capability is registered."""

from __future__ import annotations

from pathlib import Path

from lithos.proposals.rows import PROPOSAL_TABLES
from tests.tasks.rows.test_registered_tables import ALL, made


def test_tables_of_a_missing_capability_are_not_created(tmp_path: Path) -> None:
    names = made(tmp_path / "a.db", [table for table in ALL if table is not PROPOSAL_TABLES])
    before = made(tmp_path / "b.db", ALL)
    assert set(before) - set(names) == {"proposals"}
    firsts = ("citations", "proposals", "requests")
    assert [name for name in before if name in firsts] == list(firsts)
