"""Small multisets, for structures that contain hundreds of thousands of multisets.

Most of these multisets contain only a few items, each of them once. They are tuples, with 8 bytes per item
and no memory for an empty tuple. All other multisets are dicts from item to count. The smallest dict takes
200 bytes. Items keep the order in which they were added.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T", bound=Hashable)

#: After each change (`with_count`), replace the multiset with the result, because a dict is changed in place.
Multiset: TypeAlias = tuple[T, ...] | dict[T, int]

#: Maximum number of items in a tuple. The items of a tuple are compared one by one, which is slow for more
#: items.
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
    """Return the multiset with `times` occurrences of an item.

    The caller must replace `items` with the result.
    """
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
