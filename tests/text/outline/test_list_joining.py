"""An appended list item or table row continues its list or table (docs/spec/history.md §2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lithos.text.outline.outline import read_outline, title_of
from lithos.text.outline.section_edit import SectionEdit, apply_edit
from lithos.text.yaml.layout import read_layout

PARSER = MarkdownIt("commonmark").enable("table")


def edit(note: str, op: str, text: str, section: str | None = None) -> str:
    layout = read_layout(note.encode())
    outline, title = read_outline(layout.body, title_of(layout)), title_of(layout)
    request = SectionEdit(op=op, text=text, section=section)
    return apply_edit(request, layout.body, title, layout.newline, outline).body


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["\n\n## Next\n\ntext\n", "\n", "", "\n\n\n"])
@pytest.mark.parametrize(
    ("above", "text"),
    [
        ("- one\n- two", "- three"),
        ("* one", "* two"),
        ("+ one\n+ two", "+ three\n+ four"),
        ("1. one\n2. two", "3. three"),
        ("1) one", "1) two"),
        ("- [ ] one\n- [x] two", "- [ ] three"),
        ("- one\n  - nested", "- two"),
        ("- one\n  - nested", "  - nested two"),
        ("- one", "  - nested"),
        ("- one", "  1. nested"),
        ("1. one", "   - nested"),
        ("- one\n\t- nested", "\t- nested two"),
        ("- one\n  more of one", "- two"),
        ("- one\nlazily continued", "- two"),
        ("- one\n  ```\n  code\n  ```", "- two"),
        ("Intro:\n- one", "- two"),
        ("- [ ] one", "- two"),
        ("- a\n- b\n\n- c\n- d", "- e"),
        ("  - one\n  - two", "- three"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| 3 | 4 |"),
        ("| a | b |\n| :-- | --: |", "| 3 | 4 |"),
        ("a | b\n--|--\n1 | 2", "3 | 4"),
        ("> - one\n> - two", "> - three"),
        ("> [!todo]\n> - [ ] one", "> - [ ] two"),
    ],
)
def test_appended_item_continues_its_list(above: str, text: str, end: str, newline: str) -> None:
    """behaviour 367: no blank line is inserted."""
    note = f"## Items\n\n{above}{end}".replace("\n", newline)
    wanted = f"{above}\n{text}".replace("\n", newline)
    assert wanted in edit(note, "append", text, "Items")
    if "Next" not in end:
        assert wanted in edit(note, "append", text)


@pytest.mark.parametrize(
    ("above", "text"),
    [
        ("- one\n\n- two", "- three"),  # a loose list, whose items have blank lines between them
        ("- one\n\n  more\n\n- two", "- three"),
        ("- one", "* two"),
        ("- one", "1. two"),
        ("1. one", "2) two"),
        ("text", "- one"),
        ("- one", "text"),
        ("```\n- one\n```", "- two"),
        ("<!--\n- one\n-->", "- two"),
        ("- one\n\n---", "- two"),
        ("* * *", "* one"),
        ("-one", "- two"),
        ("> - one", "- two"),
        ("text | more", "| a | b |"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| c | d |\n|---|---|"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "text"),
        ("- one\n# Heading in the list's place", "- two"),
    ],
)
def test_other_appended_blocks_are_separated_by_one_blank_line(above: str, text: str) -> None:
    """behaviour 367"""
    assert f"{above}\n\n{text}\n" in edit(f"{above}\n", "append", text)


@pytest.mark.parametrize(
    ("below", "text"),
    [
        ("- one\n- two", "- zero"),
        ("- [ ] one", "- [ ] zero"),
        ("2. two", "1. one"),
        ("- one\n  - in", "- zero\n  - in"),
    ],
)
def test_prepended_item_continues_its_list(below: str, text: str) -> None:
    """behaviour 367"""
    assert f"{text}\n{below}\n" in edit(f"## Items\n\n{below}\n\n## Next\n", "prepend", text, "Items")
    assert f"{text}\n{below}\n" in edit(f"{below}\n", "prepend", text)


@pytest.mark.parametrize(
    ("below", "text"),
    [("- one\n\n- two", "- zero"), ("text", "- one"), ("* one", "- zero"), ("- one", "text")],
)
def test_other_prepended_blocks_are_separated_by_a_blank_line(below: str, text: str) -> None:
    """behaviour 367"""
    assert f"{text}\n\n{below}\n" in edit(f"{below}\n", "prepend", text)


items = st.lists(
    st.sampled_from(["- a", "  - b", "- [ ] c", "  more", "    - d"]), min_size=1, max_size=8
).map(lambda lines: ["- first", *lines])


@given(items, st.lists(st.sampled_from(["- x", "- [x] y", "  - z"]), min_size=1, max_size=4), st.booleans())
def test_appended_items_form_one_tight_list_and_keep_every_byte(
    lines: list[str], added: list[str], has_section: bool
) -> None:
    """behaviour 367: the list is checked with a Markdown parser."""
    before = "## Log\n\n" + "\n".join(lines)
    note = f"{before}\n\n## Next\n" if has_section else f"{before}\n"
    for text in added:
        note = edit(note, "append", text, "Log" if has_section else None)
    assert note.startswith(before)
    tokens = PARSER.parse(note)
    assert sum(token.type == "bullet_list_open" and token.level == 0 for token in tokens) == 1
    assert all(token.hidden for token in tokens if token.type == "paragraph_open")


def test_long_list_is_recognised_from_its_last_lines() -> None:
    """behaviour 367: appending to a long log is as cheap as reading its last lines."""
    note = "".join(f"- line {i}\n" for i in range(6_000))
    assert edit(note, "append", "- new") == note + "- new\n"
    table = "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 4_000
    assert edit(table, "append", "| 3 | 4 |") == table + "| 3 | 4 |\n"
