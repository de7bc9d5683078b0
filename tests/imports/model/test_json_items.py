"""JSON lists of any length, which are read item by item.

The values are those of `json` (behaviours 240, 241).
"""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from lithos.imports.model.json_items import Damaged, read_items, read_json


class Slow(io.BytesIO):
    """A file that returns only a few bytes per read."""

    step = 1 << 20

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self.step)


def items(data: bytes, step: int = 1 << 20, **more: Any) -> list[Any]:
    file = Slow(data)
    file.step = step
    return list(read_items(file, **more))


@pytest.mark.parametrize("step", [1, 2, 5, 13, 64, 65_536])
def test_items_have_the_values_that_the_json_module_reads(step: int) -> None:
    """behaviour 240"""
    value = [1, 'a,]"', {"k": "é🌿", "deep": [[{"x": [1, 2]}]]}, None, -12.5e3, [], {}, True]
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert items(b"\xef\xbb\xbf " + text.encode(), step) == value


@pytest.mark.parametrize("step", [1, 5, 64, 65_536])
@pytest.mark.parametrize(
    "damage",
    [
        b'{"title": "x", "m": [1, 2}, "b": 1}',
        b'{"title": "x", "m": {"a": 1]}',
        b'{"title": "x"]}',
        b'{"title": "x"} {}',
        b'{"title": nothing-at-all, "b": 1}',
    ],
)
def test_item_after_damaged_data_is_found(step: int, damage: bytes) -> None:
    """behaviour 241"""
    data = b'[{"title": "a"}, ' + damage + b', {"title": "b", "c": [{"d": "}"}]}, {"title": "e"}]'
    found = items(data, step)
    good = [each for each in found if not isinstance(each, Damaged) and each != {"title": "x"}]
    assert good == [{"title": "a"}, {"title": "b", "c": [{"d": "}"}]}, {"title": "e"}]
    assert sum(isinstance(each, Damaged) for each in found) == 1


def test_item_above_the_size_limit_is_reported() -> None:
    """behaviour 241"""
    data = b'[{"a": 1}, {"a": "' + b"x" * 3_000_000 + b'"}, {"a": 2}]'
    assert items(data, most=1 << 20) == [{"a": 1}, Damaged("the item has more than 1 MB"), {"a": 2}]


def test_item_with_too_deep_nesting_is_reported() -> None:
    """behaviour 241"""
    deep = b'{"a": ' + b"[" * 300_000 + b"]" * 300_000 + b"}"
    one, damaged, two = items(b'[{"a": 1}, ' + deep + b', {"a": 2}]')
    assert (one, two) == ({"a": 1}, {"a": 2})
    assert isinstance(damaged, Damaged)


@pytest.mark.parametrize(("data", "read"), [(b"[1, 2", 2), (b'[1, {"a": "x', 1), (b"[1, tr", 1), (b"[", 0)])
def test_items_of_a_truncated_list_are_read(data: bytes, read: int) -> None:
    """behaviour 241"""
    *good, last = items(data)
    assert len(good) == read
    assert last.reason.startswith("the export is truncated")


@pytest.mark.parametrize("data", [b"[1] [3] and more", b"[1]]", b"[1 2]"])
def test_text_after_an_item_or_list_is_reported(data: bytes) -> None:
    """behaviour 241"""
    one, damaged = items(data)
    assert one == 1
    assert "is not valid JSON" in damaged.reason


@pytest.mark.parametrize("data", [b"[]", b"[ \n ]", b"", b"  "])
def test_empty_input_has_no_items(data: bytes) -> None:
    """behaviour 240"""
    assert items(data) == []


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": "x\ty"}', {"a": "x\ty"}),
        (b'{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
        (b'{"a": "\\u0000"}', {"a": "\0"}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b'{"a": "caf\xe9"}', {"a": "café"}),
        ('{"a": "ü"}'.encode("utf-16"), {"a": "ü"}),
        (b'{"a": 1, "a": 2}', {"a": 2}),
    ],
)
def test_unusual_values_of_exports_are_accepted(data: bytes, value: object) -> None:
    """behaviour 241"""
    assert read_json(data) == value


@pytest.mark.parametrize("data", [b"", b"{", b"[1,]", b"[" * 100_000, b"{1: 2}", b"[1,]x", b"9" * 5_000])
def test_invalid_json_is_refused_with_a_reason(data: bytes) -> None:
    """behaviour 241"""
    with pytest.raises(ValueError, match=r"\w+"):
        read_json(data)
