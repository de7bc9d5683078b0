"""Retention: versions are deleted by age and number. The first, the newest and today's versions stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lithos.notes.model import versions
from lithos.notes.model.versions import KeptVersion, VersionLimits, believe_order, cuts, surplus_versions

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def limits(keep_days: int = 365, keep_versions: int = 200, keep_deleted_days: int = 365) -> VersionLimits:
    return VersionLimits(
        keep_days=keep_days, keep_versions=keep_versions, keep_deleted_days=keep_deleted_days
    )


def rows(*ages: float, deleted: bool = False) -> list[KeptVersion]:
    """Return versions with the given ages in days, oldest first.

    If `deleted` is set, the last version is a deletion.
    """
    last = len(ages) - 1
    return [
        KeptVersion(number + 1, NOW - timedelta(days=age), deleted and number == last)
        for number, age in enumerate(ages)
    ]


def test_old_versions_except_first_and_newest_are_deleted() -> None:
    """behaviour 225"""
    assert surplus_versions(rows(900, 800, 400, 300, 1), NOW, limits()) == [3, 2]
    assert surplus_versions(rows(900, 800), NOW, limits()) == []
    assert surplus_versions(rows(900), NOW, limits()) == []
    assert surplus_versions([], NOW, limits()) == []


def test_only_the_newest_versions_stay_when_the_number_is_limited() -> None:
    """behaviour 225"""
    many = rows(*(100 - day for day in range(90)))
    assert surplus_versions(many, NOW, limits(keep_versions=10)) == list(range(79, 1, -1))


def test_versions_of_the_last_day_do_not_count_towards_limits() -> None:
    """behaviour 225"""
    today = [0.9 - 0.001 * n for n in range(500)]
    assert surplus_versions(rows(50, 40, 30, *today), NOW, limits(keep_versions=1)) == [2]
    assert surplus_versions(rows(*today), NOW, limits(keep_versions=1)) == []


def test_zero_disables_a_retention_limit() -> None:
    old = rows(*(9_000 - day for day in range(400)))
    assert surplus_versions(old, NOW, limits(0, 0, 0)) == []
    assert surplus_versions(rows(9_000, 8_000, 7_000, deleted=True), NOW, limits(0, 0, 0)) == []


def test_hard_retention_limit_always_applies(monkeypatch) -> None:
    monkeypatch.setattr(versions, "MOST_VERSIONS", 5)
    assert surplus_versions(rows(*[0.5] * 9), NOW, limits(0, 0, 0)) == [5, 4, 3, 2]


def test_versions_of_a_note_are_deleted_long_after_its_deletion() -> None:
    """behaviour 225"""
    assert surplus_versions(rows(900, 800, 366, deleted=True), NOW, limits()) == [1, 2, 3]
    assert surplus_versions(rows(900, 800, 364, deleted=True), NOW, limits()) == [2]
    back = [*rows(900, 800, 366, deleted=True), KeptVersion(4, NOW, is_deletion=False)]
    assert 4 not in surplus_versions(back, NOW, limits())


def test_version_with_a_future_time_counts_as_young() -> None:
    assert surplus_versions(rows(50, -400, -300, 0), NOW, limits(keep_versions=1)) == []


@given(
    st.lists(st.floats(-10, 1_000), max_size=60),
    st.integers(0, 500),
    st.integers(0, 20),
    st.integers(0, 500),
    st.booleans(),
)
def test_retention_keeps_first_last_and_newest_other_versions(
    ages: list[float], days: int, versions: int, deleted_days: int, deleted: bool
) -> None:
    found = rows(*ages, deleted=deleted)
    dropped = surplus_versions(found, NOW, limits(days, versions, deleted_days))
    assert len(set(dropped)) == len(dropped)
    kept = [row for row in found if row.place not in dropped]
    if not kept:
        assert not found or (deleted and deleted_days and ages[-1] > deleted_days)
        return
    assert (kept[0], kept[-1]) == (found[0], found[-1])
    counted = [row for row in kept[1:-1] if row.at < NOW - timedelta(hours=24)]
    assert not versions or len(counted) <= versions
    if days:
        assert all(row.at >= NOW - timedelta(days=days) for row in kept[1:-1])
    assert surplus_versions(kept, NOW, limits(days, versions, deleted_days)) == []


def test_versions_recorded_after_a_young_version_count_as_young() -> None:
    """behaviour 414"""
    young = NOW - timedelta(days=365)
    found = believe_order(rows(900, 20_000, 20_000, 1), [(young, 2)])
    assert [row.at for row in found[:2]] == [row.at for row in rows(900, 20_000)]
    assert surplus_versions(found, NOW, limits()) == [2]
    assert cuts(NOW, limits(0, 0, 0)) == [NOW - timedelta(days=1)]
