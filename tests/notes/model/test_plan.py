"""Plans: differences between the wanted state and the actual state."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.kernel.values.events import NOTE_CREATED, NOTE_RENAMED, NOTE_UPDATED
from lithos.notes.model.plan import (
    MASS_LOSS,
    FilePlan,
    IdClaim,
    IndexPlan,
    VanishRule,
    elect,
    is_mass_loss,
    plan_event,
    plan_files,
    plan_index,
    plan_vanished,
)
from tests.kernel.values.bounds import cpu_bound

stamps = st.dictionaries(st.integers(1, 6), st.integers(0, 2))
states = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 2))


def test_index_plan_adds_changed_notes_and_removes_vanished_ones():
    plan = plan_index({3: 30, 1: 10, 2: 20}, {2: 20, 3: 99, 7: 70, 5: 50})
    assert plan == IndexPlan(add=(1, 3), remove=(5, 7))
    assert plan.total == 4


@given(stamps, stamps)
def test_applied_index_plan_brings_the_index_up_to_date(wanted, held):
    plan = plan_index(wanted, held)
    after = {serial: stamp for serial, stamp in held.items() if serial not in plan.remove}
    after |= {serial: wanted[serial] for serial in plan.add}
    assert after == wanted
    assert plan_index(wanted, after).total == 0
    assert all(held.get(serial) != wanted[serial] for serial in plan.add)
    assert list(plan.add) == sorted(plan.add)
    assert list(plan.remove) == sorted(plan.remove)


def test_file_plan_separates_files_to_examine_from_missing_files():
    plan = plan_files({"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 2, "d": 1})
    assert plan == FilePlan(examine=("b", "d"), missing=("c",))


@given(states, states)
def test_every_path_is_either_unchanged_examined_or_missing(known, found):
    plan = plan_files(known, found)
    same = [path for path, state in found.items() if known.get(path) == state]
    assert sorted([*same, *plan.examine, *plan.missing]) == sorted({*known, *found})
    assert plan_files(found, found) == FilePlan((), ())


def test_change_of_a_path_emits_a_rename_event():
    assert plan_event(None, ("a.md", "1")) == NOTE_CREATED
    assert plan_event(("a.md", "1"), ("b.md", "2")) == NOTE_RENAMED
    assert plan_event(("a.md", "1"), ("a.md", "2")) == NOTE_UPDATED
    assert plan_event(("a.md", "1"), ("a.md", "1")) is None


@pytest.mark.parametrize(
    ("vanished", "corpus", "is_loss"),
    [(20, 20, False), (11, 21, True), (10, 21, False), (50, 100, False), (51, 100, True)],
)
def test_mass_loss_exceeds_the_fraction_of_over_20_notes(vanished, corpus, is_loss):
    """behaviour 198"""
    assert is_mass_loss(vanished, corpus, MASS_LOSS) is is_loss


def test_many_vanished_files_are_kept_unless_approved():
    """behaviour 198"""
    some = ["a", "b", "c"]
    assert plan_vanished(some, 100, VanishRule()) == frozenset()
    assert plan_vanished(some, 100, VanishRule(keep_all=True)) == {"a", "b", "c"}
    assert plan_vanished(some, 100, VanishRule(kept=frozenset("ax"))) == {"a"}
    assert plan_vanished(some, 100, VanishRule(keep_all=True, approved=frozenset("ab"))) == {"c"}
    assert plan_vanished(some, 100, VanishRule(kept=frozenset("a"), approved=frozenset("a"))) == frozenset()
    assert plan_vanished([str(n) for n in range(60)], 100, VanishRule(MASS_LOSS)) == {
        str(n) for n in range(60)
    }


def claim(path: str, digest: str = "", mtime_ns: int = 1) -> IdClaim:
    return IdClaim(path, digest or path, mtime_ns)


def kept(known: list[tuple[str, str]], *claims: IdClaim) -> str:
    """Return the path of the elected file. It must not depend on the order of the claims."""
    elected = {elect(order, known).path for order in permutations(claims)}
    assert len(elected) == 1
    return elected.pop()


COPIES = (
    "Plan 2.md", "Plan (1).md", "Plan-1.md", "Plan copy.md", "Plan - Kopie (2).md", "Copy of Plan.md",
    "Plan-DESKTOP-7A6B3C.md", "Archive/Plan.md", "Plan.sync-conflict-20260102-030405-ABCDEFG.md",
    "Plan (Ann's conflicted copy 2026-01-02).md", "Plan (conflicted copy 2026-01-02 030405).md",
    "Plan (In Konflikt stehende Kopie von Ann 2026-01-02).md", "Plan (Conflicted copy phone 202601020304).md",
)  # fmt: skip


@pytest.mark.parametrize("copy", COPIES)
def test_unknown_id_is_never_assigned_to_a_copy_name(copy: str) -> None:
    assert kept([], claim(copy, mtime_ns=0), claim("Plan.md")) == "Plan.md"
    assert kept([], claim(copy, mtime_ns=0), claim("Projects/Other name.md")) == "Projects/Other name.md"


def test_unknown_id_is_assigned_to_older_file_then_first_path() -> None:
    assert kept([], claim("a.md", mtime_ns=2), claim("b.md")) == "b.md"
    assert kept([], claim("a.md"), claim("b.md")) == "a.md"


def test_id_election_prefers_the_former_path_then_bytes_then_names() -> None:
    z, copy, a = claim("z.md", "new"), claim("z 2.md", "old"), claim("a.md", mtime_ns=0)
    assert kept([("z.md", "old")], z, copy, a) == "z.md"
    assert kept([("gone.md", "old")], z, copy, a) == "z 2.md"
    assert kept([("gone.md", "lost"), ("z.md", "lost")], z, copy, a) == "z.md"
    assert kept([("gone.md", "lost")], z, copy, a) == "a.md"


def test_ordinary_copy_keeps_its_id_but_conflict_copy_returns_it() -> None:
    assert kept([("Plan 2.md", "")], claim("Plan 2.md"), claim("Plan.md")) == "Plan 2.md"
    for copy in COPIES[-5:]:
        assert kept([(copy, "")], claim(copy), claim("Plan.md"), claim("a.md")) == "Plan.md"
        assert kept([(copy, "")], claim(copy), claim("a.md")) == copy


def test_unknown_id_is_never_assigned_to_another_claimants_copy() -> None:
    """behaviour 343, also under a weak copy name and for the older file."""
    note, copy = IdClaim("people/gbraad.md", "a", 2), IdClaim("people/gbraad-obsidian.md", "b", 1)
    assert elect([copy, note], []) == note
    assert elect([copy, note], [(copy.path, "b")]) == copy, "unless the note was known there"


def test_id_election_among_many_copies_takes_linear_time() -> None:
    claims = [IdClaim(f"a-b-c-d-e-{number}x.md", str(number), number) for number in range(20_000)]
    with cpu_bound(5):
        assert elect(claims, []) == claims[0]
