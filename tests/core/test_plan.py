"""Comparisons of what should be with what is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lithos.core.plan import FilePlan, IndexPlan, plan_files, plan_index

stamps = st.dictionaries(st.integers(1, 6), st.integers(0, 2))
states = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 2))


def test_an_index_lacks_the_new_and_the_changed_and_holds_the_vanished():
    plan = plan_index({3: 30, 1: 10, 2: 20}, {2: 20, 3: 99, 7: 70, 5: 50})
    assert plan == IndexPlan(add=(1, 3), remove=(5, 7))
    assert plan.total == 4


@given(stamps, stamps)
def test_carrying_an_index_plan_out_makes_them_meet_and_touches_no_more(wanted, held):
    plan = plan_index(wanted, held)
    after = {serial: stamp for serial, stamp in held.items() if serial not in plan.remove}
    after |= {serial: wanted[serial] for serial in plan.add}
    assert after == wanted
    assert plan_index(wanted, after).total == 0
    assert all(held.get(serial) != wanted[serial] for serial in plan.add)
    assert list(plan.add) == sorted(plan.add)
    assert list(plan.remove) == sorted(plan.remove)


def test_files_are_unchanged_to_examine_or_missing():
    plan = plan_files({"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 2, "d": 1})
    assert plan == FilePlan(unchanged=("a",), examine=("b", "d"), missing=("c",))


@given(states, states)
def test_every_path_is_in_exactly_one_part(known, found):
    plan = plan_files(known, found)
    parts = [*plan.unchanged, *plan.examine, *plan.missing]
    assert sorted(parts) == sorted({*known, *found})
    assert plan_files(found, found) == FilePlan(tuple(found), (), ())
