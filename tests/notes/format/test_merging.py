"""Three-way merges of bodies and frontmatter (docs/spec/history.md §3)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st

from lithos.notes.format.merging import (
    MOST_CONFLICTS,
    MOST_LINES,
    TEXT_CUT,
    merge_documents,
    merge_items,
    merge_texts,
)
from lithos.notes.model.note import Document, Note
from lithos.text.outline import differences
from lithos.text.outline.differences import match_lines

NOW = datetime(2026, 1, 2, tzinfo=UTC)
NOTE = Note(id="0b6f4f3e-6d3b-4c39-8a8e-5a3f4f1f5d10", title="T", author="ann", tags=("a", "b"), version=3)

#: Lists of a few different lines, so that lines repeat. The lines have line breaks of all kinds.
LINES = st.lists(st.sampled_from(["", "a", "b", "c", "- [ ] x", "<<<<<<< mine", "="]), max_size=12)
BREAKS = st.sampled_from(["\n", "\r\n", "\n\n"])
TEXTS = st.one_of(
    st.builds(lambda lines, mark, end: mark.join(lines) + end, LINES, BREAKS, st.sampled_from(["", "\n"])),
    st.text(st.sampled_from("ab\n\r\u2028é"), max_size=12),
)
ITEMS = st.lists(st.sampled_from("abcdef"), max_size=6, unique=True)


def lines_of(text: str) -> list[str]:
    """Split a text into lines.

    A carriage return at the end of a line is part of its line break, even without a line feed.
    """
    return [line.removesuffix("\r") for line in text.split("\n")]


def merged(base: str, mine: str, theirs: str) -> str:
    found = merge_texts(base, mine, theirs)
    assert found.result is not None, found.conflicts
    return found.result


@given(TEXTS, TEXTS)
def test_change_of_only_one_side_is_the_merge_result(base: str, changed: str) -> None:
    """behaviour 218"""
    assert merged(base, base, changed) == changed
    assert merged(base, changed, base) == changed
    assert merged(base, changed, changed) == changed


@given(TEXTS, TEXTS, TEXTS)
def test_merge_does_not_depend_on_the_order_of_sides(base: str, mine: str, theirs: str) -> None:
    """behaviour 218"""
    one, other = merge_texts(base, mine, theirs), merge_texts(base, theirs, mine)
    assert one.total == other.total
    assert (one.result is None) == (other.result is None) == bool(one.total)
    assert [(c.base, c.mine, c.theirs) for c in one.conflicts] == [
        (c.base, c.theirs, c.mine) for c in other.conflicts
    ]
    if one.result is not None and other.result is not None:  # The kinds of line breaks may differ.
        assert lines_of(one.result) == lines_of(other.result)


@given(TEXTS, TEXTS, TEXTS)
@example("b", "b\n", "\r")
def test_merge_loses_no_new_line(base: str, mine: str, theirs: str) -> None:
    """behaviour 218"""
    found = merge_texts(base, mine, theirs)
    if found.result is None:
        return
    before = set(lines_of(base))
    added = (set(lines_of(mine)) | set(lines_of(theirs))) - before - {""}
    assert added <= set(lines_of(found.result))
    assert set(lines_of(found.result)) <= before | added | {""}, "nothing is made up, no marker either"


@st.composite
def disjoint_edits(draw: st.DrawFn) -> tuple[str, str, str, str]:
    """Draw a text, two edits separated by an untouched line, and the text with both edits."""
    count = draw(st.integers(1, 30))
    mark = draw(st.sampled_from(["\n", "\r\n"]))
    lines = [f"line {n}" for n in range(count)]
    # On each side, a line is kept, replaced, deleted or followed by new lines.
    mine, theirs, both = [], [], []
    last: int | None = None
    is_kept = True
    for n, line in enumerate(lines):
        side = draw(st.sampled_from([None, None, 0, 1]))
        if side is not None and not is_kept and side != last:
            side = None  # A change of this line would touch a change of the other side.
        change = draw(st.sampled_from(["replace", "delete", "insert"])) if side is not None else "keep"
        new = {"replace": [f"new {n}"], "delete": [], "insert": [f"new {n}", f"newer {n}", line]}.get(
            change, [line]
        )
        mine += new if side == 0 else [line]
        theirs += new if side == 1 else [line]
        both += new
        # A replaced or deleted line does not separate two changes.
        is_kept = change in ("keep", "insert")
        if side is not None:
            last = side
    end = draw(st.sampled_from(["", mark]))
    # The first line of a text, `top`, and the last line, `end`, stay unchanged.
    base, *others = (mark.join(["top", *each, "end"]) + end for each in (lines, mine, theirs, both))
    return base, others[0], others[1], others[2]


@given(disjoint_edits())
def test_disjoint_edits_are_both_merged(edits: tuple[str, str, str, str]) -> None:
    """behaviour 218"""
    base, mine, theirs, both = edits
    assert merged(base, mine, theirs) == both
    assert merged(base, theirs, mine) == both


@given(ITEMS, ITEMS, ITEMS)
def test_list_items_are_merged_as_sets_that_keep_their_order(
    base: list[str], mine: list[str], theirs: list[str]
) -> None:
    """behaviour 218"""
    found = merge_items(base, mine, theirs)
    before, one, other = set(base), set(mine), set(theirs)
    assert set(found) == (one & other) | (one - before) | (other - before)
    assert len(found) == len(set(found))
    assert merge_items(base, base, theirs) == theirs
    assert merge_items(base, mine, base) == mine


@given(st.lists(st.integers(0, 5), max_size=40), st.lists(st.integers(0, 5), max_size=40))
def test_matched_lines_are_equal_and_in_order(first: list[int], second: list[int]) -> None:
    """behaviour 218"""
    i = j = 0
    for at, to, size in match_lines(first, second)[0]:
        assert size > 0
        assert at >= i
        assert to >= j
        i, j = at + size, to + size
        assert first[at:i] == second[to:j]


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "result"),
    [
        ("a\n\nb\n\nc", "A\n\nb\n\nc", "a\n\nb\n\nC", "A\n\nb\n\nC"),
        ("a\nb\nc", "a\nx\nb\nc", "a\nb\ny\nc", "a\nx\nb\ny\nc"),
        ("a\nb\nc", "b\nc", "a\nb", "b"),
        ("a\nb", "a\nb\n", "x\na\nb", "x\na\nb\n"),
        ("a\nb\n", "a\nb", "x\na\nb\n", "x\na\nb"),
        ("a\nb", "a\nb\nc", "a\nb\n", "a\nb\nc\n"),
        ("a\r\nb\r\n", "a\nb\n", "a\r\nb\r\nc\r\n", "a\nb\nc\n"),
        ("a\nb\n", "a\nx\nb\n", "a\r\nb\r\n", "a\r\nx\r\nb\r\n"),
        ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"),
        ("a\r\nb\nm\nc\n", "a\r\nb\nm\nC\n", "A\r\nb\nm\nc\n", "A\r\nb\nm\nC\n"),
        ("", "a\n", "a\n", "a\n"),
        ("", "a\n", "b\n", None),
        ("a\nb\nc\n", "a\nB\nc\n", "a\nb\nC\n", None),
        ("a\n", "", "a\nb\n", None),
    ],
)
def test_texts_are_merged_line_by_line(base: str, mine: str, theirs: str, result: str | None) -> None:
    """behaviour 218. A result of None means that the changes touch or overlap."""
    assert merge_texts(base, mine, theirs).result == result


def test_overlap_names_its_line_in_the_current_text() -> None:
    """behaviour 218"""
    found = merge_texts("a\nb\nc\n", "a\nB\nc\n", "new\na\n2\nc\n")
    assert found.result is None
    assert [each.to_row() for each in found.conflicts] == [
        {"line": 3, "base": "b\n", "mine": "B\n", "theirs": "2\n"}
    ]


def test_conflicts_are_bounded_in_number_and_length() -> None:
    base = "".join(f"{n}\n=\n" for n in range(1_000))
    long = "y" * 5_000
    found = merge_texts(base, base.replace("7", "x"), base.replace("7", long))
    assert found.total > MOST_CONFLICTS == len(found.conflicts)
    assert all(len(each.to_row()["theirs"]) == TEXT_CUT for each in found.conflicts)


def test_too_costly_comparison_is_reported_as_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts with only two different lines have no anchors. A quarter of all pairs of lines are equal."""
    monkeypatch.setattr(differences, "MOST_PAIRS", 1_000)
    one = "".join("a\n" if n % 3 else "b\n" for n in range(400))
    other = "".join("b\n" if n % 5 else "a\n" for n in range(400))
    found = merge_texts("x\n" + one + "y\n", "X\n" + one + "y\n", "x\n" + other + "y\n")
    assert not found.is_complete
    assert found.result is None


def test_text_of_too_many_lines_is_one_overlap() -> None:
    """A text of 1,000,000 characters may have as many lines. The limit bounds the time of the merge."""
    many = "\n" * (MOST_LINES + 1)
    found = merge_texts(many, f"x{many}", f"{many}y")
    assert (found.result, found.total, found.is_complete) == (None, 1, False)
    few = "\n" * (MOST_LINES - 1)
    assert merge_texts(few, f"x{few}", f"{few}y").result == f"x{few}y"


def document(content: str = "text", **fields: Any) -> Document:
    return Document(note=evolve(NOTE, **fields), content=content)


def test_frontmatter_is_merged_by_key() -> None:
    """behaviour 218"""
    base = document(extra={"owner": "ann", "size": 1, "gone": True, "list": ["x"]})
    mine = document(
        title="Mine", tags=("b", "new"), extra={"owner": "bob", "size": 1, "list": ["x", "m"], "m": [1]}
    )
    theirs = document(
        "other",
        tags=("t", "a", "b"),
        status="archived",
        version=9,
        contributors=("zoe",),
        updated_at=NOW,
        extra={"owner": "ann", "size": 2, "gone": True, "list": ["t", "x"], "m": [2]},
    )
    found = merge_documents(base, mine, theirs).result
    assert found is not None
    assert found.content == "other"
    assert (found.note.title, found.note.status, found.note.tags) == ("Mine", "archived", ("t", "b", "new"))
    assert (found.note.version, found.note.contributors, found.note.updated_at) == (9, ("zoe",), NOW)
    assert found.note.extra == {"owner": "bob", "size": 2, "list": ["t", "x", "m"], "m": [2, 1]}


def test_key_changed_to_two_different_values_is_an_overlap() -> None:
    """behaviour 218, also if one side removed the key, or if equal numbers have different types."""
    base = document(extra={"a": 1, "b": 1, "c": "x"}, expires_at=None)
    mine = document(extra={"a": 2, "c": "x" * 9_000}, expires_at=NOW, title="T")
    theirs = document(extra={"a": True, "b": 1.0, "c": {"k": "v" * 9_000}}, confidence=0.5, title="T")
    found = merge_documents(base, mine, theirs)
    assert found.result is None
    rows = {each.to_row()["key"]: each.to_row() for each in found.conflicts}
    assert set(rows) == {"a", "b", "c"}
    assert rows["a"] == {"key": "a", "base": 1, "mine": 2, "theirs": True}
    assert rows["b"] == {"key": "b", "base": 1, "mine": None, "theirs": 1.0}
    assert len(rows["c"]["mine"]) == len(rows["c"]["theirs"]) == TEXT_CUT


def test_equal_changes_of_both_sides_are_merged_once() -> None:
    """behaviour 218"""
    changed = document("a\nnew\nb", title="New", tags=("b", "c"), extra={"k": 1})
    found = merge_documents(document("a\nb"), changed, evolve(changed, note=evolve(changed.note, version=4)))
    assert found.result is not None
    assert found.result.content == "a\nnew\nb"
    assert found.result.note.version == 4
