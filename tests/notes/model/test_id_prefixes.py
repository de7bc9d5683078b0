"""The sorted keys behind short ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.notes.model import id_prefixes
from lithos.notes.model.id_prefixes import SortedKeys

KEYS = st.text("ab", max_size=6)


@given(loaded=st.sets(KEYS), changes=st.lists(st.tuples(st.booleans(), KEYS), max_size=60), prefix=KEYS)
def test_keys_are_found_like_in_a_plain_set(
    loaded: set[str], changes: list[tuple[bool, str]], prefix: str
) -> None:
    """behaviour 335"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(id_prefixes, "_BLOCK", 4)
        keys, known = SortedKeys(), set(loaded)
        keys.load(loaded)
        for is_new, key in changes:
            (keys.add if is_new else keys.discard)(key)
            (known.add if is_new else known.discard)(key)
        wanted = sorted(key for key in known if key.startswith(prefix))
        for most in (1, 3, 100):
            assert keys.starting(prefix, most) == wanted[:most]


def test_lookups_and_changes_touch_few_keys_in_a_large_set() -> None:
    """behaviour 335: blocks stay small, whatever the order in which keys arrive."""
    keys = SortedKeys()
    for number in range(20_000):
        keys.add(f"{number * 7_919 % 1_000_003:06}")
    assert max(map(len, keys._blocks)) < id_prefixes._BLOCK
    assert len(keys._blocks) < 20_000 // (id_prefixes._BLOCK // 4)
