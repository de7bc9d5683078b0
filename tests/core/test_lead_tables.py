"""The table that finds first places tells what `numpy.unique` tells."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lithos.core.learning.lead import _MOST_KEYS, _first_of_each


@given(keys=st.lists(st.integers(0, 40), max_size=80), count=st.sampled_from((41, 500, _MOST_KEYS + 1)))
def test_the_first_place_of_each_key(keys, count):
    given_keys = np.array(keys, np.intp)
    expected = np.unique(given_keys, return_index=True)[1]
    assert _first_of_each(given_keys, count).tolist() == expected.tolist()
