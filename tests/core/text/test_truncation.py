from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.core.errors import InvalidInput
from lithos.core.text.snippet import truncate


@pytest.mark.parametrize("limit", [None, 0, 5, 6])
def test_content_within_the_limit_is_untouched(limit: int | None) -> None:
    """behaviour 45."""
    assert truncate("short", limit) == ("short", False)


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(InvalidInput):
        truncate("short", -1)


@pytest.mark.parametrize(
    ("content", "limit", "result"),
    [
        ("first part here\n\nsecond part", 25, "first part here"),
        ("first part here\n \nsecond part", 25, "first part here"),
        ("a\n\nOne two. Three four five", 20, "a\n\nOne two."),
        ("你好。再见。" + "字" * 20, 12, "你好。再见。"),
        ("Version 1.5 of the tool is out", 20, "Version 1.5 of..."),
        ("A. rather long words follow", 17, "A. rather..."),
        ("abcdefghijkl", 8, "abcde..."),
        ("abcdefghijkl", 4, "a..."),
        ("abcdefghijkl", 3, "abc"),
        ("abcdefghijkl", 1, "a"),
    ],
)
def test_content_is_cut_at_the_best_place(content: str, limit: int, result: str) -> None:
    """behaviour 45: blank line, else sentence end (both past half), else space, else hard."""
    assert truncate(content, limit) == (result, True)


@given(st.text(alphabet="ab .!?。\n", max_size=60), st.integers(1, 70))
def test_the_result_never_exceeds_the_limit(content: str, limit: int) -> None:
    result, cut = truncate(content, limit)
    assert len(result) <= limit
    assert cut == (len(content) > limit)
    assert content.startswith(result.removesuffix("..."))
