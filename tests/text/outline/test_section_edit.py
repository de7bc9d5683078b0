"""Edits of a section or match: the result of each operation. All other text stays unchanged."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lithos.kernel.values.errors import (
    InvalidInput,
    LithosError,
    SectionNotFound,
    TextAmbiguous,
    TextNotFound,
)
from lithos.text.outline.outline import (
    Outline,
    begins_with_heading,
    hash_text,
    read_outline,
    scan_tasks,
    title_of,
)
from lithos.text.outline.section_edit import (
    MOST_SEARCHED,
    OPERATIONS,
    Edited,
    OtherHash,
    SectionEdit,
    apply_edit,
    check_edit,
)
from lithos.text.yaml.layout import Layout, read_layout
from tests.history.model.bodies import BLOCKS, bodies

BLANK = " \t\r\n"


def edit(note: str, /, **fields: Any) -> Edited:
    """Apply an edit to a note file. The result contains the body."""
    layout = read_layout(note.encode())
    request = SectionEdit(**fields)
    check_edit(request)
    return apply(request, layout, outline_of(layout))


def outline_of(layout: Layout) -> Outline:
    return read_outline(layout.body, title_of(layout))


def apply(request: SectionEdit, layout: Layout, outline: Outline) -> Edited:
    return apply_edit(request, outline.body, outline.title, layout.newline, outline)


NOTE = "# T\n\nIntro.\n\n## A\n\nOne.\n\n### A1\n\nInner.\n\n## B\nTight.\n## C\n"


@pytest.mark.parametrize(
    ("op", "section", "result"),
    [
        ("append", "A", NOTE.replace("Inner.\n", "Inner.\n\nNEW\n")),
        ("append", "B", NOTE.replace("Tight.\n", "Tight.\n\nNEW\n\n")),
        ("append", "C", NOTE.replace("## C\n", "## C\n\nNEW\n")),
        ("append", None, NOTE + "\nNEW\n"),
        ("append", "(top)", NOTE.replace("Intro.\n", "Intro.\n\nNEW\n")),
        ("prepend", "A", NOTE.replace("## A\n", "## A\n\nNEW\n")),
        ("prepend", "B", NOTE.replace("## B\n", "## B\n\nNEW\n\n")),
        ("prepend", "C", NOTE.replace("## C\n", "## C\n\nNEW\n")),
        ("prepend", None, NOTE.replace("# T\n", "# T\n\nNEW\n", 1)),
        ("prepend", "(top)", NOTE.replace("# T\n", "# T\n\nNEW\n", 1)),
        ("insert_before", "B", NOTE.replace("## B", "NEW\n\n## B")),
        ("insert_before", "C", NOTE.replace("## C", "\nNEW\n\n## C")),
        ("insert_before", "(top)", NOTE.replace("Intro.", "NEW\n\nIntro.")),
        ("insert_after", "A", NOTE.replace("Inner.\n", "Inner.\n\nNEW\n")),
        ("insert_after", "C", NOTE + "\nNEW\n"),
        ("replace", "A", NOTE.replace("One.\n\n### A1\n\nInner.", "NEW")),
        ("replace", "A1", NOTE.replace("Inner.", "NEW")),
        ("replace", "B", NOTE.replace("Tight.\n", "NEW\n\n")),
        ("replace", "C", NOTE + "\nNEW\n"),
        ("replace", "(top)", NOTE.replace("Intro.", "NEW")),
        ("remove", "A", NOTE.replace("## A\n\nOne.\n\n### A1\n\nInner.\n\n", "")),
        ("remove", "A1", NOTE.replace("### A1\n\nInner.\n\n", "")),
        ("remove", "C", NOTE.replace("## C\n", "")),
        ("remove", "(top)", NOTE.replace("Intro.\n\n", "")),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_each_edit_operation_changes_its_target(
    op: str, section: str | None, result: str, newline: str
) -> None:
    """behaviour 215"""
    text = None if op == "remove" else "\n\nNEW\n  \n"
    edited = edit(NOTE.replace("\n", newline), op=op, section=section, text=text)
    assert edited.body == result.replace("\n", newline)
    assert edited.warnings == ()
    if op == "remove":
        assert (edited.section, edited.section_hash) == (None, None)
    elif section is not None:
        layout = read_layout(edited.body.encode())
        outline = outline_of(layout)
        assert edited.section_hash == outline.hash_of(outline.find(edited.section or ""))


AB = "# T\n\n## A\n\nx\n"
PARAGRAPH = "# T\n\npara\n## A\n\nx\n"


@pytest.mark.parametrize(
    ("body", "fields", "result"),
    [
        ("", {"op": "append", "text": "x"}, "\nx\n"),
        ("# T", {"op": "append", "text": "x"}, "# T\n\nx"),
        ("# T\n", {"op": "prepend", "text": "x\r\ny"}, "# T\n\nx\ny\n"),
        ("---\nid: a\n---\ntext", {"op": "prepend", "text": "x"}, "\nx\n\ntext"),
        (AB[:-1], {"op": "remove", "section": "A"}, "# T"),
        ("# T\n\nlast\n", {"op": "remove", "section": "(top)"}, "# T\n"),
        (
            "# T\n## A\nx\ny\n## B",
            {"op": "replace", "section": "A", "text": "## Z\n\nnew"},
            "# T\n## Z\n\nnew\n\n## B",
        ),
        (AB, {"op": "replace", "section": "A", "text": "Z\n---\nnew"}, "# T\n\nZ\n---\nnew\n"),
        (PARAGRAPH, {"op": "replace", "section": "A", "text": "Z\n---"}, "# T\n\npara\n\nZ\n---\n"),
        (f"{PARAGRAPH}\nB\n---\n", {"op": "remove", "section": "A"}, "# T\n\npara\n\nB\n---\n"),
        (AB, {"op": "find_replace", "find": "x", "text": ""}, "# T\n\n## A\n\n\n"),
        (
            "# T\r\n\r\na\r\nb\r\n",
            {"op": "find_replace", "find": "a\nb", "text": "c\nd"},
            "# T\r\n\r\nc\r\nd\r\n",
        ),
        (
            f"{AB}\n## B\n\nx\n",
            {"op": "find_replace", "section": "b", "find": "x", "text": "y"},
            f"{AB}\n## B\n\ny\n",
        ),
        ("# T\n\n- [ ] a\n- [X] b\n", {"op": "check", "find": "a"}, "# T\n\n- [x] a\n- [X] b\n"),
        ("# T\n\n- [ ] a\n- [X] b\n", {"op": "uncheck", "find": "- [X] b"}, "# T\n\n- [ ] a\n- [ ] b\n"),
        ("# T\n\n- [ ] **a** [[p|q]]\n", {"op": "check", "find": "a q"}, "# T\n\n- [x] **a** [[p|q]]\n"),
    ],
)
def test_edits_at_the_ends_of_notes_and_sections_are_correct(
    body: str, fields: dict[str, Any], result: str
) -> None:
    """behaviours 215, 220"""
    assert edit(body, **fields).body == result


def test_find_replace_requires_exactly_one_match() -> None:
    with pytest.raises(TextNotFound):
        edit(NOTE, op="find_replace", find="one.", text="x")
    with pytest.raises(TextAmbiguous) as refused:
        edit("# T\n\naaa b aaa\n", op="find_replace", find="aaa", text="x")
    assert refused.value.extras["count"] == 2
    with pytest.raises(TextAmbiguous):  # the matches overlap
        edit("# T\n\naaa\n", op="find_replace", find="aa", text="x")
    with pytest.raises(TextNotFound):  # the title is not part of the body
        edit("# Title\n\nx\n", op="find_replace", find="Title", text="x")


def test_check_operation_requires_exactly_one_matching_item() -> None:
    """behaviour 220"""
    body = "# T\n\n- [ ] a\n\n## A\n\n- [ ] a\n- [ ] b\n"
    with pytest.raises(TextAmbiguous) as refused:
        edit(body, op="check", find="a")
    assert refused.value.extras["count"] == 2
    assert edit(body, op="check", find="a", section="A").body == body[:-16] + "- [x] a\n- [ ] b\n"
    with pytest.raises(TextNotFound):
        edit(body, op="check", find="c")
    with pytest.raises(TextNotFound):
        edit("# T\n\n```\n- [ ] a\n```\n", op="check", find="a")
    with pytest.raises(InvalidInput, match="section"):
        edit("# T\n\n- [ ] a\n" + "text\n" * (MOST_SEARCHED // 5), op="check", find="a")
    again = edit("# T\n\n- [x] a\n", op="check", find="a")
    assert again.body == "# T\n\n- [x] a\n"
    assert again.warnings == ("The item was already checked.",)


@pytest.mark.parametrize(
    "fields",
    [
        {"op": "rename", "section": "A", "text": "x"},
        {"op": "replace", "text": "x"},
        {"op": "remove"},
        {"op": "insert_before", "text": "x"},
        {"op": "append"},
        {"op": "append", "text": " \n"},
        {"op": "find_replace", "text": "x"},
        {"op": "find_replace", "find": "x"},
        {"op": "check", "find": " "},
    ],
)
def test_invalid_edit_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        check_edit(SectionEdit(**fields))


def test_expected_hash_covers_only_the_section() -> None:
    """behaviour 217"""
    outline = outline_of(read_layout(NOTE.encode()))
    known = outline.hash_of(outline.find("A"))
    changed = edit(NOTE, op="append", section="B", text="x").body
    exchange = {"op": "find_replace", "section": "A", "find": "One.", "text": "One.\n\nx"}
    exchanged = edit(changed, **exchange, expected_hash=known.upper()).body
    assert "## A\n\nOne.\n\nx\n\n### A1" in exchanged
    longer = edit(NOTE, op="append", section="A1", text="x").body
    with pytest.raises(OtherHash) as refused:
        edit(longer, op="append", section="A", text="y", expected_hash=known)
    place = refused.value
    assert place.path == "A"
    assert place.text == "## A\n\nOne.\n\n### A1\n\nInner.\n\nx"
    assert place.hash == hash_text(place.text)
    whole = edit(NOTE, op="append", text="x").section_hash
    assert edit(NOTE + "\nx\n\n", op="append", text="y", expected_hash=whole).body.endswith("x\n\ny\n\n")


def test_text_that_swallows_later_headings_causes_a_warning() -> None:
    edited = edit(NOTE, op="append", section="A", text="```\nnot closed")
    (warning,) = edited.warnings
    assert "2 headings" in warning


def block_of(text: str, newline: str) -> str:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    while lines and not lines[0].strip(" \t"):
        lines.pop(0)
    return "\n".join(lines).rstrip(BLANK).replace("\n", newline)


new_texts = st.one_of(st.sampled_from(BLOCKS), bodies()).filter(lambda text: text.strip())
block_operations = st.sampled_from(
    ("append", "prepend", "replace", "insert_before", "insert_after", "remove")
)
numbers = st.integers(0, 50)


@given(bodies(), block_operations, new_texts, numbers)
def test_text_outside_the_edited_section_is_unchanged(body: str, op: str, text: str, number: int) -> None:
    """behaviour 215: text before and after the section stays unchanged, and the section is as expected."""
    layout = read_layout(body.encode())
    outline, newline = outline_of(layout), layout.newline
    section = outline.sections[number % len(outline.sections)]
    old, block = outline.text_of(section), block_of(text, newline)
    request = SectionEdit(op=op, section=section.path, text=None if op == "remove" else text)
    check_edit(request)
    edited = apply(request, layout, outline)
    before, behind = outline.body[: section.start], outline.body[section.end :]
    if section.start == section.stop:
        before = outline.body[: section.text_end]
    head, parting, rest = outline.body[section.start : section.text_end], newline * 2, ""
    if op == "prepend":
        rest = old if section.level == 0 else old[len(head) :]
        rest = re.sub(r"\A([ \t]*(\r\n?|\n))+", "", rest)
        middle = parting.join(part for part in (head if section.level else "", block, rest) if part)
    elif op in ("append", "insert_after"):
        middle = parting.join(part for part in (old, block) if part)
    elif op == "insert_before":
        middle = parting.join(part for part in (block, old) if part)
    elif op == "remove":
        middle = ""
    elif section.level == 0 or begins_with_heading(block, section.level):
        middle = block
    else:
        gap = re.match(r"([ \t]*(\r\n?|\n))*", old[len(head) :])
        assert gap is not None
        middle = head + (gap[0] if len(gap[0]) < len(old) - len(head) else parting) + block
    kept = before.rstrip(BLANK)
    assert edited.body.startswith(kept)
    assert edited.body.endswith(behind)
    inner = edited.body[len(kept) : len(edited.body) - len(behind)]
    first, found, last = inner.partition(middle) if middle else (inner, "", "")
    assert found == middle
    assert not first.strip(BLANK)
    assert not last.strip(BLANK)
    is_gap_kept = op == "insert_before" or (op == "prepend" and rest)
    if op not in ("remove", "replace") and behind:
        assert last == (outline.body[section.stop : section.end] if is_gap_kept and old else parting)
    puts_first = op in ("insert_before", "remove") or (op == "prepend" and section.level == 0)
    if not puts_first and kept and old:
        assert kept + first in (before, before.rstrip(" ") + newline)
    if not behind and outline.body.strip(BLANK) and middle:
        assert last == outline.body[len(outline.body.rstrip(BLANK)) :].lstrip(" \t") or last.endswith(
            outline.body[max(section.stop, len(outline.body.rstrip(BLANK))) :].lstrip(" \t")
        )
    same_outline_outside(outline, edited, section.start, section.end)


def same_outline_outside(before: Outline, edited: Edited, start: int, end: int) -> None:
    """Check that headings outside the section are still headings, or that a warning counts lost headings."""
    after = read_outline(edited.body, edited.outline.title if edited.outline else None)
    assert edited.outline is not None
    assert edited.outline.sections == after.sections
    grown = len(edited.body) - len(before.body)
    there = {each.start for each in after.blocks.headings}
    assert all(each.start in there for each in before.blocks.headings if each.start < start)
    lost = sum(each.start + grown not in there for each in before.blocks.headings if each.start >= end)
    assert lost == 0 or edited.warnings


@given(bodies(), numbers, st.integers(0, 30), new_texts, numbers)
def test_find_replace_changes_only_its_match(
    body: str, begin: int, length: int, text: str, number: int
) -> None:
    """behaviour 215"""
    layout = read_layout(body.encode())
    outline = outline_of(layout)
    section = outline.sections[number % len(outline.sections)]
    part = outline.body[section.start : section.end]
    assume(part.strip())
    begin %= len(part)
    wanted = part[begin : begin + 1 + length]
    assume(wanted.strip() and not wanted.startswith("\n") and not wanted.endswith("\r"))
    request = SectionEdit(op="find_replace", section=section.path, find=wanted, text=text)
    shown, seen = wanted.replace("\r\n", "\n"), part.replace("\r\n", "\n")
    if seen.find(shown, seen.find(shown) + 1) >= 0:
        with pytest.raises(TextAmbiguous):
            apply(request, layout, outline)
        return
    edited = apply(request, layout, outline)
    at = section.start + begin
    new = text.replace("\r\n", "\n").replace("\n", layout.newline)
    assert edited.body == outline.body[:at] + new + outline.body[at + len(wanted) :]
    assert edited.outline is not None
    assert edited.outline.sections == read_outline(edited.body, edited.outline.title).sections


@given(bodies(), numbers)
def test_check_and_uncheck_change_one_character(body: str, number: int) -> None:
    """behaviour 220"""
    body = f"# T\n\n- [ ] first\n\n{body}"
    layout = read_layout(body.encode())
    outline = outline_of(layout)
    part = outline.body[outline.origin :]
    items = list(scan_tasks(part))
    item = items[number % len(items)]
    op = "uncheck" if item.is_done else "check"
    request = SectionEdit(op=op, find=item.text)
    if sum(each.text == item.text for each in items) > 1:
        with pytest.raises(LithosError):
            apply(request, layout, outline)
        return
    edited = apply(request, layout, outline)
    at = outline.origin + item.mark
    assert edited.body == outline.body[:at] + (" " if item.is_done else "x") + outline.body[at + 1 :]


@pytest.mark.parametrize("op", OPERATIONS)
def test_every_operation_refuses_an_unknown_section(op: str) -> None:
    """behaviour 214"""
    with pytest.raises(SectionNotFound):
        edit(NOTE, op=op, section="None", text="x", find="x")
