"""JSON with positions: values, dialects, and refusals by line and column."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.core.editing.json_text import DEEPEST, Dialect, InvalidText, read_json

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)


def plain(text: str, dialect: Dialect) -> Any:
    node = read_json(text, dialect)
    return None if node is None else node.plain()


@given(
    VALUES, st.sampled_from([None, 0, 2, "\t"]), st.booleans(), st.sampled_from(["json", "jsonc", "json5"])
)
def test_what_python_writes_is_read_as_python_reads_it(
    value: Any, indent: Any, ascii_only: bool, dialect: Dialect
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert plain(text, dialect) == json.loads(text)


@given(st.text(alphabet='{}[]:,"\\/*\n 1ae-.u', max_size=12))
def test_strict_json_is_exactly_what_python_accepts(text: str) -> None:
    try:
        expected: Any = (json.loads(text),)
    except ValueError:
        expected = None
    try:
        node = read_json(text, "json")
        found: Any = None if node is None else (node.plain(),)
    except InvalidText:
        found = None
    assert found == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('// c\n{ /* d */ "a": [1, 2,], }', {"a": [1, 2]}),
        ('{"http://x": "/* no */ // no"}', {"http://x": "/* no */ // no"}),
        ("\ufeff{}", {}),
        (" // only a comment", None),
    ],
)
def test_comments_and_trailing_commas_are_no_part_of_the_value(text: str, value: Any) -> None:
    assert plain(text, "jsonc") == value
    assert plain(text, "json5") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 'it\\'s', $b_1: \"\\x41\\\n\"}", {"a": "it's", "$b_1": "A"}),
        ("[0xFf, .5, 5., +1, -Infinity]", ["0xFf", 0.5, 5.0, 1.0, float("-inf")]),
        ("{größe: null, true: true}", {"größe": None, "true": True}),
        ("'\\u00e9\\ud83d\\ude00\\0'", "é😀\0"),
    ],
)
def test_json5_has_more_spellings(text: str, value: Any) -> None:
    assert plain(text, "json5") == value
    with pytest.raises(InvalidText):
        read_json(text, "jsonc")


@pytest.mark.parametrize(
    ("text", "dialect", "line", "column"),
    [
        ('{"a": 1,}', "json", 1, 9),
        ("{\n  // x\n}", "json", 2, 3),
        ('{"a": 01}', "json", 1, 7),
        ('{"a" 1}', "jsonc", 1, 6),
        ('{"a": 1 "b": 2}', "jsonc", 1, 9),
        ('{"a": "\n"}', "jsonc", 1, 7),
        ("{} {}", "jsonc", 1, 4),
        ("{\r\n/* no end", "jsonc", 2, 1),
        ('{"a": ', "jsonc", 1, 7),
        ("{'a': 1}", "jsonc", 1, 2),
        ("{a: 'b}", "json5", 1, 5),
        ('{"a": tru}', "jsonc", 1, 7),
        ("[" * (DEEPEST + 1), "jsonc", 1, DEEPEST + 1),
    ],
)
def test_what_is_invalid_is_refused_with_its_place(
    text: str, dialect: Dialect, line: int, column: int
) -> None:
    with pytest.raises(InvalidText) as refusal:
        read_json(text, dialect)
    assert (refusal.value.line, refusal.value.column) == (line, column)
