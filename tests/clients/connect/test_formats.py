"""Edits of a configuration text, which change only the entry for Lithos."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.clients.connect.formats import CannotEdit, HasComments, InvalidText, JsonFormat, TomlFormat

ENTRY = {"type": "stdio", "command": "/bin/größe", "args": ["-d", "a b"]}
JSON, TOML = JsonFormat(("mcp", "servers")), TomlFormat(("mcp_servers",))
KEYS = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | KEYS | st.just("// , }"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(KEYS, VALUES, max_size=3), VALUES, st.sampled_from([None, 1, 2, 4, "\t"]), st.booleans()
)
def test_json_edit_keeps_other_values_and_layout(tree: Any, other: Any, indent: Any, is_ascii: bool) -> None:
    tree = {**tree, "mcp": {"servers": {"other": {"env": other}}, "more": 1}}
    text = json.dumps(tree, indent=indent, ensure_ascii=is_ascii) + "\n"
    with_entry = JSON.edit(text, "lithos", ENTRY)
    left = JSON.edit(with_entry, "lithos", None, JSON.tree(text))
    assert json.loads(left) == tree
    assert list(json.loads(with_entry)) == list(tree)
    tree["mcp"]["servers"]["lithos"] = ENTRY
    assert json.loads(with_entry) == tree
    if "\\" not in text:
        assert left == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = 1\n",
        "# only a comment\n",
        "a = 1 # mine\r\n[mcp_servers.other]\r\ncommand = 'x'\r\n# tail\r\n",
        "[mcp_servers]\n# mine\n\n[a]\nb = nan\n",
        'mcp_servers.other.command = "x"\n',
        "[[a]]\nb = 1\n[[a]]\nb = 2\n",
        'a = """\n[mcp_servers.lithos]\n"""\n',
    ],
)
def test_toml_edit_keeps_all_other_bytes(text: str) -> None:
    with_entry = TOML.edit(text, "lithos", ENTRY)
    assert with_entry.startswith(text)
    assert tomllib.loads(with_entry)["mcp_servers"]["lithos"] == ENTRY
    assert TOML.edit(with_entry, "lithos", None) == text
    changed = TOML.edit(with_entry + "\n[z]\n", "lithos", {"url": "u"})
    assert TOML.entries(changed)["lithos"] == {"url": "u"}


@pytest.mark.parametrize(
    "text", ["mcp_servers = {}\n", "mcp_servers = { a = { command = 'x' } }", "mcp_servers = 1"]
)
def test_toml_is_refused_when_servers_are_not_tables(text: str) -> None:
    with pytest.raises(CannotEdit):
        TOML.edit(text, "lithos", ENTRY)


@pytest.mark.parametrize("text", ['{"a": 1,}', '// "\n{"a": "//"}', '{"a": [1, /* "} */ 2]}', '{"mcp": {},}'])
def test_json_with_comments_is_read_but_not_edited(text: str) -> None:
    assert JSON.entries(text) == {}
    with pytest.raises(HasComments):
        JSON.edit(text, "lithos", ENTRY)


@pytest.mark.parametrize("text", ["{", '{"a" 1}', "{'a': 1}", '{"a": "\n"}', "{} {}", '{"a": 1} x'])
def test_error_for_invalid_json_names_the_line(text: str) -> None:
    with pytest.raises(InvalidText, match="line"):
        JSON.edit(text, "lithos", ENTRY)


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', "[]", '{"mcp": []}', '{"a": "\\ud800ö"}', '{"a": 1.10}']
)
def test_json_edit_is_refused_when_it_would_lose_data(text: str) -> None:
    with pytest.raises(CannotEdit):
        JSON.edit(text, "lithos", ENTRY)
