"""Rewriting of links: the characters that change when a note is moved."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.notes.links.edit import Relinking, relink, relink_own

MOVED = Relinking(
    old="a/foo.md",
    new="b c/bär (1).md",
    pages={"foo": "bär (1)", "a/foo": "b c/bär (1)", "C#": "C#"},
    paths={"a/foo.md": "b c/bär (1).md"},
)
FILES = {"a/foo.md", "a/other.md", "a/pic.png", "x/y.md"}


def rewritten(text: str, path: str = "n.md") -> str:
    return relink(text.encode(), path, MOVED, FILES.__contains__).decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[foo]]", "[[bär (1)]]"),
        ("[[ foo#Part | shown ]]", "[[ bär (1)#Part | shown ]]"),
        ("![[a/foo#^block]]", "![[b c/bär (1)#^block]]"),
        ("|[[foo\\|f]]|", "|[[bär (1)\\|f]]|"),
        ("[[Foo]] [[foot]] [[x/foo]] [[C#]]", "[[Foo]] [[foot]] [[x/foo]] [[C#]]"),
        ("[t](a/foo.md)", "[t](b%20c/bär%20%281%29.md)"),
        ("[t](./a/foo.md#p 'x')", "[t](./b%20c/bär%20%281%29.md#p 'x')"),
        ("[t](</a/foo.md>)", "[t](</b c/bär (1).md>)"),
        ("[t](%61/foo.md)", "[t](b%20c/bär%20%281%29.md)"),
        ("[t](foo.md) [u](https://e.org/a/foo.md)", "[t](foo.md) [u](https://e.org/a/foo.md)"),
        ("[v](#foo)", "[v](#foo)"),
        ("[[not closed [[foo]]", "[[not closed [[bär (1)]]"),
    ],
)  # fmt: skip
def test_link_rewrite_changes_only_link_targets(text: str, expected: str) -> None:
    assert rewritten(text) == expected
    assert rewritten(expected) == expected  # A second rewrite changes nothing.


@pytest.mark.parametrize(
    "text",
    ["`[[foo]]`", "``[[foo]] ` ``", "```\n[[foo]]\n```", "~~~ x\n[t](a/foo.md)", "> ```\n> [[foo]]\n> ```"],
)
def test_links_in_code_are_not_rewritten(text: str) -> None:
    assert rewritten(text) == text


def test_unclosed_backtick_does_not_hide_links() -> None:
    assert rewritten("it's ` open [[foo]]\n\nand ` [[foo]]") == "it's ` open [[bär (1)]]\n\nand ` [[bär (1)]]"


def test_rewritten_paths_are_relative_to_the_linking_note() -> None:
    assert rewritten("[t](../a/foo.md)", "x/n.md") == "[t](../b%20c/bär%20%281%29.md)"
    assert rewritten("[t](foo.md)", "a/n.md") == "[t](../b%20c/bär%20%281%29.md)"
    assert rewritten("[t](bar.md) [[foo]]", "b c/n.md") == "[t](bar.md) [[bär (1)]]"
    # Obsidian may also write a path relative to the vault folder.
    assert rewritten("[t](a/foo.md)", "x/n.md") == "[t](b%20c/bär%20%281%29.md)"


def test_moved_note_gets_relative_links_from_its_new_folder() -> None:
    text = "[o](other.md) ![p](pic.png) [y](../x/y.md) [me](foo.md#x) [no](nothing.md) [r](/a/other.md)"
    done = relink_own(text.encode(), MOVED, FILES.__contains__, only_broken=False)
    assert done.decode() == (
        "[o](../a/other.md) ![p](../a/pic.png) [y](../x/y.md) [me](bär%20%281%29.md#x) [no](nothing.md) "
        "[r](/a/other.md)"
    )
    there = (FILES | {MOVED.new}).__contains__
    assert relink_own(done, MOVED, there, only_broken=True) == done


@given(
    st.lists(st.sampled_from(["[[foo]]", "`", "``", "\n", "\n\n", "```", "~~~", "[t](a/foo.md)", "x ", "é"]))
)
def test_text_without_links_is_unchanged(pieces: list[str]) -> None:
    text = "".join(pieces)
    after = rewritten(text)
    assert re.sub(r"bär \(1\)|b%20c/bär%20%281%29\.md|foo|a/foo\.md", "", after) == re.sub(
        r"a/foo\.md|foo", "", text
    )
    assert rewritten(after) == after


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[t](a/foo)", "[t](b%20c/bär%20%281%29)"),
        ("[t](<a/foo> 'x')", "[t](<b c/bär (1)> 'x')"),
        ("[t](a/foo#p) ![t](a/foo)", "[t](b%20c/bär%20%281%29#p) ![t](b%20c/bär%20%281%29)"),
        ("[t][r] [r]\n\n[r]: a/foo.md 'x'\n", "[t][r] [r]\n\n[r]: b%20c/bär%20%281%29.md 'x'\n"),
        ("[[./a/foo]] [[./a/foo.md#p|t]]", "[[./b c/bär (1)]] [[./b c/bär (1).md#p|t]]"),
        ("[[/a/foo|the [1]]]", "[[/b c/bär (1)|the [1]]]"),
        ("[[foo|the plan [1]]]", "[[bär (1)|the plan [1]]]"),
        ("\\[[foo]] \\[t](a/foo)", "\\[[foo]] \\[t](a/foo)"),
        ("x\n\n    [[foo]]\n\t[t](a/foo)", "x\n\n    [[foo]]\n\t[t](a/foo)"),
        ("<!-- [[foo]] -->", "<!-- [[foo]] -->"),
        ("[t](tag:a/foo) [t](a/foo/) [t](b[[foo]].md)", "[t](tag:a/foo) [t](a/foo/) [t](b[[bär (1)]].md)"),
        ("[t](%c3%a4/../a/foo.md)", "[t](b%20c/b%c3%a4r%20%281%29.md)"),
    ],
)  # fmt: skip
def test_rewritten_links_keep_their_form(text: str, expected: str) -> None:
    """behaviours 371, 373"""
    assert rewritten(text) == expected
    assert rewritten(expected) == expected


def test_relative_wiki_links_stay_relative() -> None:
    """behaviour 371"""
    assert rewritten("[[../a/foo]]", "x/n.md") == "[[../b c/bär (1)]]"
    assert rewritten("[[./foo]]", "a/n.md") == "[[../b c/bär (1)]]"
    assert rewritten("[[../a/foo]]", "b c/n.md") == "[[./bär (1)]]"
    own = relink_own(b"[[./other]] ![[./pic.png]] [[../x/y#p]]", MOVED, FILES.__contains__, only_broken=False)
    assert own == b"[[../a/other]] ![[../a/pic.png]] [[../x/y#p]]"


NAMED = Relinking(old="foo.md", new="it's: #1, {a}.md", pages={"foo": "it's: 1, {a}"}, paths={})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('up: "[[foo]]" # [[foo]]', 'up: "[[it\'s: 1, {a}]]" # [[foo]]'),
        ("up:   '[[foo#p|''t'']]'", "up:   '[[it''s: 1, {a}#p|''t'']]'"),
        ("up: [[foo]]", 'up: "[[it\'s: 1, {a}]]"'),
        ("up: see [[foo]] there", 'up: "see [[it\'s: 1, {a}]] there"'),
        ("up: [[[foo]], \"[[foo|x]]\", 1.0]", "up: [\"[[it's: 1, {a}]]\", \"[[it's: 1, {a}|x]]\", 1.0]"),
        (
            "up:\n  - '[[foo]]'\n  -  x: {y: \"[[foo]]\"}",
            "up:\n  - '[[it''s: 1, {a}]]'\n  -  x: {y: \"[[it's: 1, {a}]]\"}",
        ),
        ("up: |\n  [[foo]]\n  x", "up: |\n  [[it's: 1, {a}]]\n  x"),
        ("up: \"`[[foo]]`\"\n'[[foo]]': 1", "up: \"`[[foo]]`\"\n'[[foo]]': 1"),
        ("up: [[foo]], [[foo]]", "up: [[it's: 1, {a}]], [[it's: 1, {a}]]"),
        ("up: &a '[[foo]]'\nx: *a", "up: &a '[[it''s: 1, {a}]]'\nx: *a"),
        ("up: '[t](foo.md)'", "up: '[t](it''s:%20%231,%20{a}.md)'"),
        ("status: x\ntags: [a,b ]\nup: \"[[other]]\"", "status: x\ntags: [a,b ]\nup: \"[[other]]\""),
    ],
)  # fmt: skip
def test_link_rewrite_changes_only_the_links_in_properties(line: str, expected: str) -> None:
    """behaviour 372: quotes are kept, and are added where the new text requires them."""
    for newline in ("\n", "\r\n"):
        text = f"---\n{line}\n---\nBody\n".replace("\n", newline)
        after = relink(text.encode(), "n.md", NAMED, FILES.__contains__).decode()
        assert after == f"---\n{expected}\n---\nBody\n".replace("\n", newline)
