"""An entry put into a JSON text and taken out: nothing else changes, whatever the style."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lithos.core.editing.json_edit import (
    CannotEdit,
    find_embedded,
    find_entry,
    insert_embedded,
    insert_entry,
    is_same_but,
    is_same_embedded_but,
    remove_embedded,
    remove_entry,
)

PATH = ("servers", "ours")
ENTRY = {"command": "/bin/x", "args": ["a", "é"]}

SPACES = st.sampled_from(["", " ", "\n", "\r\n", "\n\t", "  ", " // c\n", '/* d, " */', "\n// e\r\n"])
NAMES = st.sampled_from(["a", "b", "servers", "ours", "http://x", 'é\\"'])


@st.composite
def documents(draw: Any, depth: int = 0) -> str:
    """A text of nested objects with blanks, comments and trailing commas wherever they may be."""
    names = draw(st.lists(NAMES, unique=True, max_size=3))
    if depth == 0 and "servers" in names:
        names.remove("servers")
        names.append("servers")
    members = []
    for name in names:
        holds = name == "servers" or (depth < 2 and draw(st.booleans()))
        if holds and depth < 2:
            value = draw(documents(depth=depth + 1))
        else:
            value = draw(st.sampled_from(["1", "1.0", "null", '"s, }"', "[1, {}, ]"]))
        gaps = [draw(SPACES) for _ in range(4)]
        members.append(f"{gaps[0]}{json.dumps(name)}{gaps[1]}:{gaps[2]}{value}{gaps[3]}")
    trailing = "," + draw(SPACES) if members and draw(st.booleans()) else ""
    return "{" + ",".join(members) + trailing + draw(SPACES) + "}"


@given(documents(), SPACES)
def test_it_comes_in_as_one_piece_and_goes_again(text: str, end: str) -> None:
    text += end
    try:
        piece = insert_entry(text, "jsonc", PATH, ENTRY)
    except CannotEdit:  # there is one already, or what should be an object is none
        return
    new = piece.apply(text)
    found = find_entry(new, "jsonc", PATH)
    assert found is not None
    assert found.plain() == ENTRY
    assert is_same_but(text, new, "jsonc", PATH, piece.parents)
    left = remove_entry(new, "jsonc", PATH)
    assert is_same_but(left, new, "jsonc", PATH)
    assert find_entry(left, "jsonc", PATH) is None
    for comment in ("// c", "// e", '/* d, " */'):
        assert left.count(comment) == text.count(comment)


@given(documents())
@example('{"a":1,"b":1,"servers":{"a":1,"http://x":1, // c\n"ours":1}}')
def test_taking_out_one_that_is_there_keeps_all_others(text: str) -> None:
    try:
        if find_entry(text, "jsonc", PATH) is None:
            return
    except CannotEdit:
        return
    left = remove_entry(text, "jsonc", PATH)
    assert is_same_but(left, text, "jsonc", PATH)
    assert len(left) < len(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "servers": {\n    "ours": {\n      "k": 1\n    }\n  }\n}\n'),
        ('{"servers":{}}', '{"servers":{"ours":{"k":1}}}'),
        ('{"servers": {"a": 1}}', '{"servers": {"a": 1, "ours": {"k": 1}}}'),
        (
            '{\n\t"servers": {\n\t\t"a": 1\n\t}\n}',
            '{\n\t"servers": {\n\t\t"a": 1,\n\t\t"ours": {\n\t\t\t"k": 1\n\t\t}\n\t}\n}',
        ),
        (
            '{\r\n    "servers": {\r\n        "a": 1, // one\r\n    },\r\n}\r\n',
            '{\r\n    "servers": {\r\n        "a": 1, // one\r\n        "ours": {\r\n            "k": 1\r\n'
            "        }\r\n    },\r\n}\r\n",
        ),
        (
            '{\n  "servers": {\n    "a": 1 // one\n  }\n}',
            '{\n  "servers": {\n    "ours": {\n      "k": 1\n    },\n    "a": 1 // one\n  }\n}',
        ),
    ],
)
def test_it_is_written_in_the_style_of_the_text(text: str, expected: str) -> None:
    assert insert_entry(text, "jsonc", PATH, {"k": 1}).apply(text) == expected


def test_a_change_elsewhere_is_noticed() -> None:
    old, new = '{"a": 1.0}', '{"a": 1, "servers": {"ours": {}}}'
    assert not is_same_but(old, new, "jsonc", PATH, 1)
    assert is_same_but(old.replace(".0", ""), new, "jsonc", PATH, 1)
    assert not is_same_but('{"a": 1}', new, "jsonc", PATH, 0)


INNER = st.sampled_from(
    ["", "{}", '{"servers": {}}', '{\n    "servers": {\n        "é😀": {}\n    },\n    "x": "\\u0041"\n}']
)


@given(INNER, st.booleans(), st.sampled_from([None, 4]))
def test_a_document_inside_of_a_string_is_edited_the_same(
    inner: str, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps({"first": "é", "inner": inner, "last": 1}, ensure_ascii=ascii_only, indent=indent)
    piece = insert_embedded(text, "inner", PATH, ENTRY)
    new = piece.apply(text)
    assert json.loads(json.loads(new)["inner"])["servers"]["ours"] == ENTRY
    assert is_same_embedded_but(text, new, "inner", PATH, piece.parents)
    left = remove_embedded(new, "inner", PATH)
    assert find_embedded(left, "inner", PATH) is None
    assert left.startswith(text[: text.index("inner")])
    assert left.endswith(text[text.index('"last"') :])
