"""Multisets for structures that keep hundreds of thousands of them, most with few items that occur once.

Such small multisets are tuples: 8 bytes per item, and no memory for an empty one. All others are dicts from
item to count, the smallest of which takes 200 bytes. Items keep the order in which they were added.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)

#: Always replace a multiset with the result of a change (`with_count`), because a dict is changed in place.
Multiset: TypeAlias = tuple[T, ...] | dict[T, int]

#: Maximum number of items in a tuple, because its items are compared one by one.
MOST_IN_TUPLE: Final = 8


def count(items: Multiset[T], item: T) -> int:
    """Return how often an item occurs in the multiset."""
    if isinstance(items, tuple):
        return 1 if item in items else 0
    return items.get(item, 0)


def total(items: Multiset[T]) -> int:
    """Return the number of items, including repetitions."""
    return len(items) if isinstance(items, tuple) else sum(items.values())


def with_count(items: Multiset[T], item: T, times: int) -> Multiset[T]:
    """Return the multiset with `times` occurrences of an item. Replace `items` with the result."""
    if isinstance(items, tuple):
        if not times:
            return tuple(each for each in items if each != item)
        is_new = item not in items
        if times == 1 and (not is_new or len(items) < MOST_IN_TUPLE):
            return (*items, item) if is_new else items
        items = dict.fromkeys(items, 1)
    if times:
        items[item] = times
    else:
        items.pop(item, None)
    return items
