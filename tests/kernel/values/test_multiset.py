"""Multisets in tuples and dicts: the results do not depend on the storage."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from lithos.kernel.values.multiset import MOST_IN_TUPLE, Multiset, count, total, with_count


@pytest.mark.parametrize("kinds", [3, MOST_IN_TUPLE, 40])
def test_multiset_behaves_like_a_counter(kinds: int) -> None:
    rng = random.Random(kinds)
    items: Multiset[str] = ()
    counter = Counter[str]()
    for _ in range(2_000):
        item, times = f"item {rng.randrange(kinds)}", rng.choice((0, 0, 1, 1, 1, 2))
        items = with_count(items, item, times)
        counter[item] = times
        counter += Counter()  # drops items whose count is zero
        assert set(items) == set(counter)
        assert len(items) == len(counter)
        assert count(items, item) == times
        assert total(items) == counter.total()


def test_few_items_are_a_tuple_in_insertion_order() -> None:
    items: Multiset[int] = ()
    for item in (3, 1, 2, 1):
        items = with_count(items, item, 1)
    assert items == (3, 1, 2)
    assert with_count(with_count(with_count(items, 3, 0), 1, 0), 2, 0) == ()


def test_many_and_repeated_items_keep_insertion_order() -> None:
    items: Multiset[int] = ()
    for item in range(MOST_IN_TUPLE + 1):
        items = with_count(items, item, 1)
    assert isinstance(items, dict)
    assert list(items) == list(range(MOST_IN_TUPLE + 1))
    assert with_count((1, 2), 1, 2) == {1: 2, 2: 1}


def test_adding_to_a_multiset_does_not_change_its_tuple() -> None:
    items: Multiset[int] = (1, 2)
    assert with_count(items, 3, 1) == (1, 2, 3)
    assert items == (1, 2)
