"""Link forms that people use, the target of each form, and text that only resembles a link."""

from __future__ import annotations

import time

import pytest

from lithos.notes.links.links import LinkTable, WikiLink, links_in, scan_links, scan_targets
from lithos.notes.links.literal import mask_literal

PATH = "x/note.md"


def targets(text: str) -> list[str]:
    return [link.target for link in scan_links(text, PATH)]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("[[2026-11-28]]", "2026-11-28"),
        ("[[202611281030]]", "202611281030"),
        ("On [[2024]],", "2024"),
        ("我在[[7]]写", "7"),
        ("[[🚀 Launch]]", "🚀 Launch"),
        ("[[❤️]]", "❤️"),
        ("[[👩‍💻]]", "👩‍💻"),
        ("[[⇧⌘]]", "⇧⌘"),
        ("[[e\u0301]]", "e\u0301"),
        ("![[2024-W12]]", "2024-W12"),
        ("[[2024#Week 1|w]]", "2024#Week 1"),
        ("[[Plan|the plan [1]]]", "Plan"),
        ("[[Plan|see [1]]", "Plan"),
        ("[[Plan|a]b]]", "Plan"),
        ("[[../y/Note]]", "/y/Note"),
        ("[[./Note#Part|n]]", "/x/Note#Part"),
        ("[[/y/Note]]", "/y/Note"),
        ("[[../../Note]]", "/../Note"),
        ("[x](Note)", "x/Note.md"),
        ("[x](../y/Note#part)", "y/Note.md"),
        ("[x](2024-11-28)", "x/2024-11-28.md"),
        ("[x](v1.2)", "x/v1.2.md"),
        ("[x](<My Note>)", "x/My Note.md"),
        ("[x](My%20Note 'a [1] title')", "x/My Note.md"),
        ("[x](Note (a title))".replace("(a title)", '"a title"'), "x/Note.md"),
        ("[x](a[1].md)", "x/a[1].md"),
        ("[x\ny](Note)", "x/Note.md"),
        ("![x](Note)", "x/Note.md"),
        ("| [[Plan\\|p]] |", "Plan"),
        ("> [!note] [[Plan]]", "Plan"),
        ("[^1]: as [[Plan]] says", "Plan"),
        ("%% [[Plan]] %%", "Plan"),
    ],
)
def test_each_link_form_resolves_to_its_note(text: str, target: str) -> None:
    """behaviour 371"""
    assert targets(f"{text}\n") == [target]
    assert scan_targets(text, PATH) == (target,)


@pytest.mark.parametrize(
    "text",
    [
        "arr[[0]]", "f(x)[[1]]", "m[[1]][[2]]", "a[[:]]", "[[1, 2]]", "[[0.5; -1]]", "[[ ]]", "\\[[Plan]]",
        "\\[x](Plan)", "[x](tag:plan)", "[x](mailto:a)", "[x](https://e.org/Plan)", "[x](www.e.org/Plan)",
        "[x](//e.org/Plan)", "[x](plan.pdf)", "[x](src/)", "[x](#plan)", "[x](.)", "[x]()", "x](Plan)",
        "[x]: Plan", "[Done]: yesterday", "[ref][gone]", "[x](My Note.md)", "[^1]: word",
    ],
)  # fmt: skip
def test_text_resembling_a_link_is_ignored(text: str) -> None:
    """behaviour 371"""
    assert targets(f"{text}\n") == []


def test_display_text_of_a_link_keeps_its_brackets() -> None:
    """behaviour 371"""
    shown = [link.display for link in scan_links("[[P|the plan [1]]] [[P|see [1]] [[P|[a] b]] [[P|]]")]
    assert shown == ["the plan [1]", "see [1", "[a] b", "P"]


def test_reference_links_get_the_targets_of_their_definitions() -> None:
    """behaviour 371: references can be full, collapsed or shortcuts. An unused definition may name a file."""
    text = (
        "[a][Ref] and [ref][] and [REF]; [b][c d]\n\n"
        "[ref]: ../y/Note.md 'title'\n[c\td]:\n  <My Note>\n> [q]: quoted.md\n"
        "[gone]: Word\n[ref]: second.md\n"
    )
    assert scan_links(text, PATH) == [
        WikiLink("y/Note.md", "a"),
        WikiLink("y/Note.md", "ref"),
        WikiLink("y/Note.md", "REF"),
        WikiLink("x/My Note.md", "b"),
        WikiLink("x/quoted.md", "q"),
    ]


@pytest.mark.parametrize(
    ("target", "note"),
    [
        ("deep2/Item", "2"),
        ("TOP2/deep2/item", "2"),
        ("top/deep/Item.md", "1"),
        ("a/b/deep2/Item", "2"),
        ("deep/Item", None),
        ("z/deep/Item", "3"),
        ("/top/deep/item", "1"),
        ("/deep/Item", None),
        ("/Item", None),
        ("Item", None),
        ("2023/01/15", "4"),
        ("2024/01/15", "5"),
        ("01/15", None),
    ],
)
def test_link_by_end_of_a_path_resolves_to_its_note(target: str, note: str | None) -> None:
    """behaviour 371"""
    table = LinkTable()
    paths = ("top/deep/Item", "top2/deep2/Item", "y/z/deep/Item", "log/2023/01/15", "log/2024/01/15")
    for number, path in enumerate(paths, 1):
        table.add(str(number), f"{path}.md", f"Title {number}")
    assert table.resolve(target) == note
    assert bool(table.candidates(target)) == (target in ("deep/Item", "Item", "01/15"))
    for number in range(1, 6):
        table.remove(str(number))
    assert table == LinkTable()


CODE = (
    "Write:\n\n    [[A]] in code\n\n\t[[B]] too\n\n```\n[[C]]\n```\n`[[D]]` <!-- [[E]]\n[x](F) --> \n"
    "> quoted\n>\n>     [[G]]\n\n- item\n\n      [[H]]\n\n1. one\n\n        [[I]]\n\n# Head\n    [[J]]\n"
)
TEXT = (
    "lazy\n    [[A]]\n\n- item\n\n  [[B]]\n\n    [[C]]\n\t- [[D]]\n\t\t- [[E]]\n\n[^1]: note\n\n    [[F]]\n\n"
    "!!! note\n\n    [[G]]\n\n>  - [[H]]\n\n10. ten\n\n    [[I]]\n\n* * *\n<!-- open [[J]]\n"
)


def test_code_and_comments_contain_no_links() -> None:
    """behaviour 373"""
    assert targets(CODE) == targets(CODE.replace("\n", "\r\n")) == []
    assert len(mask_literal(CODE)) == len(CODE)


def test_continued_items_footnotes_and_paragraphs_are_not_code() -> None:
    """behaviour 373"""
    assert targets(TEXT) == targets(TEXT.replace("\n", "\r\n")) == list("ABCDEFGHIJ")


PROPERTIES = """---
up: "[[Plan]]"
single: 'see [[Ann''s plan|x]]'
bare: [[Bare]]
list: ["[[A]]", [[B]], other]
block:
  - "[[C|c]]"
  - text
nested: {deep: {deeper: "[[D]]"}}
folded: >
  about [[E]]
  and [[F]]
unicode: "[[\\u00e9]]"
markdown: "[x](../y/Note)"
# comment: [[No]]
code: "`[[No]]`"
"[[Key]]": 1
url: https://e.org/1](2)
---
"""
FOUND = ["Plan", "Ann's plan", "Bare", "A", "B", "C", "D", "E", "F", "é", "y/Note.md"]


@pytest.mark.parametrize("text", [PROPERTIES, "\ufeff" + PROPERTIES.replace("\n", "\r\n")])
def test_links_in_properties_are_scanned(text: str) -> None:
    """behaviour 372"""
    found = links_in(f"{text}\n[[Body]]\n".encode(), "[[Body]]", PATH)
    assert [link.target for link in found] == [*FOUND, "Body"]


def test_links_in_a_broken_frontmatter_are_scanned() -> None:
    """behaviour 372: people write lists of links without quotes, which is invalid YAML."""
    data = b"---\nup: [[A]], [[B]]\n# [[C]]\n---\n"
    assert [link.target for link in links_in(data, "", PATH)] == ["A", "B"]
    assert links_in(b"---\nno end: [[A]]\n", "", PATH) == ()
    assert links_in(b"---\nx: \xff[[A]]\n---\n", "", PATH) == ()


UNITS = (
    "[", "[[", "[[a|", "[[a|[", "[a][a]", "[a]: ", "[a]: b\n", "![](", "](", "](a(", "](<a", "](a \"", "<!--",
    "    [", "\t- [", "> ", "- ", "* - ", "`[[", "\\", "[a](b", "[[a]]]", "  [[a]\n\n", "[^a]:", "---\n", "(",
    "[a]:\n",
)  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_scanning_links_takes_linear_time(unit: str) -> None:
    """A megabyte of link openers takes a few seconds at most, even on a busy machine."""
    began = time.process_time()
    scan_targets(unit * (1_000_000 // len(unit)), "a/b.md")
    assert time.process_time() - began < 10
