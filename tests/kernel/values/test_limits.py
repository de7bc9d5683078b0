"""The number of values in a JSON text, counted before the text is parsed."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.kernel.values.limits import JSON_VALUES, ValueCount, holds_more_values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('",[{}]:\\\n\u00e9/a'), max_size=9),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=4), inner, max_size=5),
    max_leaves=40,
)


def values_of(parsed: Any) -> int:
    inner = parsed.values() if isinstance(parsed, dict) else parsed if isinstance(parsed, list) else ()
    return 1 + sum(map(values_of, inner))


def marks_of(parsed: Any) -> int:
    """Return the number of counted characters: opening brackets, and commas between members."""
    if not isinstance(parsed, dict | list):
        return 0
    inner = list(parsed.values()) if isinstance(parsed, dict) else parsed
    return 1 + max(len(inner) - 1, 0) + sum(map(marks_of, inner))


@given(JSON, st.booleans(), st.lists(st.integers(0, 400), max_size=6))
def test_value_count_is_independent_of_text_chunks(value: Any, is_ascii: bool, cuts: list[int]) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii).encode()
    assert values_of(value) <= marks_of(value) + 1
    for limit in (marks_of(value), marks_of(value) - 1):
        count = ValueCount(limit)
        ends = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
        told = [count.exceeds(text[begin:end]) for begin, end in pairwise(ends)]
        is_many_quotes = 4 * limit < text.replace(rb"\\", b"").replace(rb"\"", b"").count(b'"')
        assert any(told) is (marks_of(value) > limit or is_many_quotes)


@pytest.mark.parametrize("item", [b"{}", b"[]", b"1", b'"a"', b"[[[[]]]]", b'{"a":1}', b'{"a":[]}', b'""'])
def test_endless_list_is_detected_from_its_first_bytes(item: bytes) -> None:
    """The first chunks of a list are enough for a refusal, so the rest of the list is never scanned."""
    text = b"[" + b",".join([item] * 1_000_000)
    count = ValueCount(JSON_VALUES)
    parts = [text[begin : begin + 65_536] for begin in range(0, len(text), 65_536)]
    looked = next(number for number, part in enumerate(parts, 1) if count.exceeds(part))
    assert looked * 65_536 <= 8 * JSON_VALUES + 65_536


@pytest.mark.parametrize(
    "content", [",{[:" * 250_000, '",' * 500_000, "\\," * 500_000, '\\",\\\\"[' * 150_000]
)
def test_string_counts_as_one_json_value(content: str) -> None:
    """A note of one megabyte with many commas, quotes and backslashes is accepted."""
    for is_ascii in (True, False):
        call = {"method": "tools/call", "params": {"arguments": {"content": content, "tags": ["a"]}}}
        assert not holds_more_values(json.dumps(call, ensure_ascii=is_ascii).encode(), 20)


def test_values_of_a_short_text_are_not_counted() -> None:
    assert not holds_more_values(b"[" * JSON_VALUES, JSON_VALUES)
    assert holds_more_values(b"[" * (JSON_VALUES + 1), JSON_VALUES)
