"""The splitter of JSON arrays: bounds, cuts, damage, any chunk border (behaviours 240, 241)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.core.formats.json_items import MOST_DEPTH, ItemSplitter, Piece, read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


def split(data: bytes, chunk: int = 65_536, most: int = 10_000_000) -> list[Piece]:
    splitter = ItemSplitter(most_bytes=most)
    found = [
        piece for start in range(0, len(data), chunk) for piece in splitter.feed(data[start : start + chunk])
    ]
    return [*found, *splitter.finish()]


@given(st.lists(VALUES, max_size=6), st.integers(1, 9), st.booleans())
def test_items_are_those_of_json_whatever_the_chunks(values: list[object], chunk: int, escapes: bool) -> None:
    """behaviour 240"""
    data = json.dumps(values, ensure_ascii=escapes, indent=1).encode("utf-8", "surrogatepass")
    pieces = split(data, chunk)
    assert [piece.reason for piece in pieces] == [""] * len(values)
    assert [json.loads(piece.data or b"") for piece in pieces] == values
    assert [data[piece.offset : piece.offset + len(piece.data or b"")] for piece in pieces] == [
        piece.data for piece in pieces
    ]


@pytest.mark.parametrize("chunk", [1, 3, 7, 65_536])
@pytest.mark.parametrize(
    "last", [b'{"title": "c", "x": [1, "', b'{"title": "c\\', b'{"title": "c"', b'{"title": {"a"']
)
def test_all_before_a_cut_is_there_and_the_cut_has_its_place(chunk: int, last: bytes) -> None:
    """behaviour 241"""
    whole = b'[{"title": "a"}, {"title": "b"}, '
    pieces = split(whole + last, chunk)
    assert [json.loads(piece.data) for piece in pieces if piece.data] == [{"title": "a"}, {"title": "b"}]
    cut = pieces[-1]
    assert (cut.index, cut.offset, cut.is_cut) == (2, len(whole), True)
    assert f"byte {len(whole + last)}" in cut.reason


def test_a_cut_between_two_items_loses_nothing_and_is_told() -> None:
    """behaviour 241"""
    pieces = split(b'[{"a": 1}, {"a": 2}')
    assert [piece.data for piece in pieces] == [b'{"a": 1}', b'{"a": 2}', None]
    assert pieces[-1].is_cut


@pytest.mark.parametrize("chunk", [1, 2, 5, 13, 64, 65_536])
@pytest.mark.parametrize(
    "damage", [b'{"title": "x", "m": [1, 2}, "b": 1}', b'{"title": "x", "m": {"a": 1]}', b'{"title": "x"]}']
)
def test_behind_damage_the_next_item_is_found(chunk: int, damage: bytes) -> None:
    """behaviour 241"""
    data = b'[{"title": "a"}, ' + damage + b', {"title": "b", "c": [{"d": "}"}]}, {"title": "e"}]'
    pieces = split(data, chunk)
    good = [json.loads(piece.data) for piece in pieces if piece.data]
    assert good == [{"title": "a"}, {"title": "b", "c": [{"d": "}"}]}, {"title": "e"}]
    assert [piece.offset for piece in pieces if piece.data is None] == [17]


def test_an_item_above_the_bound_is_passed_over_and_not_held() -> None:
    """behaviour 241"""
    pieces = split(b'[1, {"a": "' + b"x" * 3_000_000 + b'"}, 2]', most=1024 * 1024)
    assert [piece.data for piece in pieces] == [b"1", None, b"2"]
    assert "more than 1 MB" in pieces[1].reason


def test_an_item_that_nests_too_deeply_is_passed_over() -> None:
    """behaviour 241"""
    deep = b"[" * 300_000 + b"]" * 300_000
    pieces = split(b"[1, " + deep + b", 2]")
    assert [piece.data for piece in pieces] == [b"1", None, b"2"]
    assert str(MOST_DEPTH) in pieces[1].reason


def test_two_lists_in_one_file_count_as_one_and_other_text_is_told() -> None:
    """behaviour 241"""
    pieces = split(b"[1, 2] [3] and more")
    assert [piece.data for piece in pieces] == [b"1", b"2", b"3", None]
    assert pieces[-1].offset == 11


@pytest.mark.parametrize("data", [b"[]", b"[ \n ]", b"", b"  ", b"{}"])
def test_nothing_has_no_items(data: bytes) -> None:
    """behaviour 240"""
    assert split(data) == []


def test_a_large_value_is_that_of_json() -> None:
    """behaviour 240"""
    value = {
        "a\"'\\": [{"k": "é" * 90, "n": number, "deep": [[[number]]]} for number in range(2_000)],
        "b": "x" * 200_000,
        "c": {},
        "d": [],
    }
    assert read_json(json.dumps(value, indent=1).encode()) == value
    assert read_json(json.dumps(value, ensure_ascii=False).encode("cp1252")) == value


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
def test_what_exports_have_is_let_pass(data: bytes, value: object) -> None:
    """behaviour 241"""
    assert read_json(data) == value


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[1,]", b"[" * 100_000, b"{" + b" " * 70_000 + b"1: 2}", b"[1" + b" " * 70_000 + b",]x"],
)
def test_what_is_no_json_is_refused_with_a_reason(data: bytes) -> None:
    """behaviour 241"""
    with pytest.raises(ValueError, match=r"\w+"):
        read_json(data)
