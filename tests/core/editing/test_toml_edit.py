"""A table put at the end of a TOML text and taken out: nothing else changes."""

from __future__ import annotations

import tomllib

import pytest

from lithos.core.editing.json_edit import CannotEdit
from lithos.core.editing.json_text import InvalidText
from lithos.core.editing.toml_edit import find_table, insert_table, is_same_table_but, read_toml, remove_table

PATH = ("mcp_servers", "ours")
TABLE = {"command": 'C:\\x "y"\x7f', "args": ["a", "é😀"], "on": True, "env": {"A B": "1"}}
TEXTS = [
    "",
    "\ufeffa = 1",
    "a = 1\r\nb = 2\r\n",
    "[mcp_servers]\n",
    "[mcp_servers.other]\ncommand = 'x'\n# the end",
    'a = [\n  [1],\n  ["]"], # ]\n]\n\n[t]\nx = """\n[mcp_servers.ours]\n"""\ny = \'\'\'"""\'\'\'\n',
    "[[t]]\nx = nan\n[[t]]\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_it_comes_in_at_the_end_and_goes_again(text: str) -> None:
    piece = insert_table(text, PATH, TABLE)
    new = piece.apply(text)
    assert new.startswith(text)
    assert find_table(new, PATH) == TABLE
    assert is_same_table_but(text, new, PATH, piece.parents)
    assert remove_table(new, PATH).rstrip() == text.rstrip()


def test_tables_below_it_and_in_the_middle_go_with_it() -> None:
    text = "a = 1\n\n[mcp_servers.ours]\nx = 1 # mine\n\n# b's\n[b]\n"
    text += "[mcp_servers.ours.env]\ny = 1\n\n[c]\nz = 1\n"
    left = remove_table(text, PATH)
    assert tomllib.loads(left) == {"a": 1, "b": {}, "c": {"z": 1}}
    assert "# b's\n[b]\n" in left


@pytest.mark.parametrize("text", ["mcp_servers = {}\n", "mcp_servers.other.x = 1\n[mcp_servers]\n"])
def test_servers_in_one_piece_get_no_table(text: str) -> None:
    with pytest.raises((CannotEdit, InvalidText)):
        insert_table(text, PATH, TABLE)


def test_an_entry_that_is_no_table_is_not_taken_out() -> None:
    with pytest.raises(CannotEdit):
        remove_table("mcp_servers = { ours = { x = 1 }, b = 2 }\n", PATH)


@pytest.mark.parametrize(
    ("text", "line"),
    [("a = 1\nb = \n", 2), ('a = """', 1), ("[" * 5_000, 1), ("b = 1\n" + "a." * 501 + "a = 1", 2)],
)
def test_what_is_no_toml_is_refused_with_its_place(text: str, line: int) -> None:
    with pytest.raises(InvalidText) as refusal:
        read_toml(text)
    assert refusal.value.line == line


def test_a_change_elsewhere_is_noticed() -> None:
    assert not is_same_table_but("a = 1", "a = 2\n[mcp_servers.ours]", PATH, 1)
    assert not is_same_table_but("a = 1", "a = 1\n[mcp_servers.ours]", PATH, 0)
