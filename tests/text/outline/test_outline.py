"""Outlines: headings that become sections, section paths, and the lookup of a section."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lithos.kernel.values.errors import InvalidInput, SectionNotFound
from lithos.text.outline.outline import (
    MOST_LINES,
    TOP,
    Outline,
    begins_with_heading,
    hash_text,
    read_changed,
    read_outline,
    scan_tasks,
    title_of,
)
from lithos.text.yaml.layout import read_layout
from tests.history.model.bodies import blocks, bodies


def outline_of(text: str) -> Outline:
    """Return the outline of a note file."""
    layout = read_layout(text.encode())
    return read_outline(layout.body, title_of(layout))


def paths(outline: Outline) -> list[str]:
    return [each.path for each in outline.listed()]


NOTE = """\
---
id: x
---

# The title

Intro.

## Deploy
Text.

### Rollback

```
## not in a fence
```

> ## not in a quote

- ## not in an item

<!--
## not in a comment
-->

<div>
## not in HTML
</div>

Setext *heading*
of two lines
---

### Rollback

### Rollback ###

# Another H1
"""


def test_outline_has_every_heading_except_the_title() -> None:
    """behaviour 213"""
    outline = outline_of(NOTE)
    assert [(each.path, each.level) for each in outline.listed()] == [
        (TOP, 0),
        ("Deploy", 2),
        ("Deploy > Rollback", 3),
        ("Setext heading of two lines", 2),
        ("Setext heading of two lines > Rollback", 3),
        ("Setext heading of two lines > Rollback (2)", 3),
        ("Another H1", 1),
    ]
    top, deploy, rollback = outline.listed()[:3]
    assert outline.text_of(top) == "Intro."
    assert outline.text_of(deploy).startswith("## Deploy\nText.\n\n### Rollback\n\n```")
    assert outline.text_of(deploy).endswith("</div>")
    assert outline.text_of(rollback) == outline.text_of(deploy)[len("## Deploy\nText.\n\n") :]
    assert outline.hash_of(top) == hash_text("Intro.")
    assert len(outline.hash_of(top)) == 12


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", []),
        ("text", [TOP]),
        ("# T\n", []),
        ("# T\n\n## A", ["A"]),
        ("# T\r\n\r\n## A\r\n\r\nx\r\n", ["A"]),
        ("# T\r## A\r", ["A"]),
        ("# T\n## A\n## A\n## A (2)\n## A", ["A", "A (3)", "A (2)", "A (4)"]),
        ("# T\n## (top)\n", ["(top) (2)"]),
        ("# T\n##\n## ##\n", ["(untitled)", "(untitled) (2)"]),
        ("# T\n#### D\n## B\n### C\n# A", ["D", "B", "B > C", "A"]),
        ("# T\n## [[page|Shown]] and [link](x) \\* `c`\n", ["Shown and link * c"]),
        ("# T\n\n- - - - - - - - - - - - - - - - - - - - - - - - a\n\n## After\n", [TOP, "After"]),
        ("# T\n\n" + "> " * 60 + "a\n\n## After\n", [TOP, "After"]),
        ("# T\n\n```\n## x", [TOP]),
        ("## Before\n\n# T\n\nIntro\n\n## A", ["Before", TOP, "A"]),
    ],
)
def test_section_paths_include_parent_headings(body: str, expected: list[str]) -> None:
    """behaviour 213"""
    assert paths(outline_of(body)) == expected


def test_every_h1_is_a_section_when_titles_are_not_headings() -> None:
    layout = read_layout(b"# One\n\ntext\n", keeps_heading=True)
    assert title_of(layout) is None
    assert paths(read_outline(layout.body, None)) == ["One"]


SEVERAL = "# T\n## Deploy\n### Rollback\n## Test\n### Rollback\n### Café (old)\n"


@pytest.mark.parametrize(
    ("given_path", "found"),
    [
        ("Deploy", "Deploy"),
        ("deploy", "Deploy"),
        ("  Deploy  >  rollback ", "Deploy > Rollback"),
        ("TEST > ROLLBACK", "Test > Rollback"),
        ("cafe\u0301 (OLD)", "Test > Café (old)"),
        ("### Café (old)", "Test > Café (old)"),
        ("(top)", TOP),
    ],
)
def test_section_is_found_by_path_or_unambiguous_path_end(given_path: str, found: str) -> None:
    """behaviour 214"""
    assert outline_of(SEVERAL).find(given_path).path == found


def test_ambiguous_or_missing_path_is_refused_with_candidates() -> None:
    """behaviour 214"""
    with pytest.raises(SectionNotFound) as several:
        outline_of(SEVERAL).find("rollback")
    assert several.value.extras["candidates"] == ["Deploy > Rollback", "Test > Rollback"]
    with pytest.raises(SectionNotFound) as missing:
        outline_of(SEVERAL).find("Rolback of test")
    assert missing.value.extras["candidates"][0] == "Test"
    assert len(missing.value.extras["candidates"]) == 5
    with pytest.raises(SectionNotFound) as many:
        outline_of("# T\n" + "## Same\n" * 50).find("nothing")
    assert len(many.value.extras["candidates"]) == 20


def test_full_path_takes_precedence_over_path_end_and_case() -> None:
    """behaviour 214"""
    outline = outline_of("# T\n## A\n### a\n## B\n### A\n## a\n")
    assert outline.find("A").path == "A"
    assert outline.find("a").path == "a"
    assert outline.find("b > a").path == "B > A"


def test_text_with_too_many_lines_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too many"):
        read_outline("x\n" * MOST_LINES)


TASKS = """\
- [ ] open
- [x] done *well*
  - [X] inner
1. [ ] number
> - [ ] quoted
- [] none
- [ ]none
```
- [ ] code
```
* [ ] two
  lines
"""


def test_task_items_are_found_outside_code() -> None:
    """behaviour 220"""
    found = list(scan_tasks(TASKS))
    assert [(each.text, each.is_done) for each in found] == [
        ("open", False),
        ("done *well*", True),
        ("inner", True),
        ("number", False),
        ("quoted", False),
        ("two lines", False),
    ]
    assert all(TASKS[each.mark - 1] == "[" and TASKS[each.mark + 1] == "]" for each in found)


@pytest.mark.parametrize(
    ("text", "level", "is_one"),
    [
        ("## A\ntext", 2, True),
        ("## A", 3, False),
        ("A\n---\n\ntext", 2, True),
        ("text\n\n## A", 2, False),
        ("```\n## A\n```", 2, False),
        ("  ## A", 2, True),
        ("#tag", 1, False),
    ],
)
def test_begins_with_heading_checks_the_first_block(text: str, level: int, is_one: bool) -> None:
    assert begins_with_heading(text, level) is is_one


def reference_headings(body: str) -> list[tuple[str, int]]:
    """Return the outermost headings that a full markdown-it parse finds."""
    tokens = MarkdownIt("commonmark", {"maxNesting": 100}).parse(body)
    return [
        (tokens[number + 1].content, int(token.tag[1:]))
        for number, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0
    ]


@given(bodies())
def test_all_text_belongs_to_sections_with_unique_paths(body: str) -> None:
    """behaviour 213"""
    layout = read_layout(body.encode())
    outline = read_outline(layout.body, title_of(layout))
    reference = reference_headings(layout.body)
    assert [each.level for each in outline.blocks.headings] == [level for _, level in reference]
    found = [each.path for each in outline.sections]
    assert len(set(found)) == len(found) == len(reference) + (1 if outline.title is None else 0)
    for each in outline.sections:
        assert outline.find(each.path) is each
        assert 0 <= each.start <= each.stop <= each.end <= len(outline.body)
        assert not outline.body[each.stop : each.end].strip(" \t\r\n")
        text = outline.text_of(each)
        assert text == text.strip("\r\n")
        inner = [one for one in outline.sections if each.start < one.start < each.end and one.level]
        assert all(one.level > each.level and one.end <= each.end for one in inner)
    covered = [(each.start, each.stop) for each in outline.sections]
    for at, character in enumerate(outline.body[outline.origin :], outline.origin):
        if character not in " \t\r\n":
            assert any(start <= at < stop for start, stop in covered), at


#: Drawn texts include beginnings of lines, so that the text before a change may get another meaning.
texts = st.one_of(
    bodies(), blocks, st.text("#`>-=\"'[]:( \na\r<!", max_size=8), st.sampled_from(("", "\n", "\n\n", "```"))
)
positions = st.tuples(st.integers(0, 10_000), st.integers(0, 10_000))


@given(bodies(), texts, positions)
def test_partial_outline_reading_equals_full_reading(body: str, text: str, places: tuple[int, int]) -> None:
    start, end = sorted(place % (len(body) + 1) for place in places)
    changed = body[:start] + text + body[end:]
    after = read_changed(read_outline(body), changed, None, start, end)
    whole = read_outline(changed)
    assert after.blocks == whole.blocks
    assert after.sections == whole.sections
