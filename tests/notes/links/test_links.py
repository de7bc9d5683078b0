from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lithos.kernel.values.errors import InvalidInput
from lithos.notes.links.links import (
    LinkTable,
    WikiLink,
    linking_sentence,
    names_of,
    normalise_sources,
    note_keys,
    scan_links,
    target_keys,
    target_names,
)

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"

NOTES = [
    ("id-1", "guide.md", "User Guide", ["Manual"]),
    ("id-2", "docs/setup.md", "Set-Up Steps", []),
    ("id-3", "a/same.md", "First Same", ["shared"]),
    ("id-4", "b/same.md", "Second Same", ["Shared"]),
    ("id-5", "c/other.md", "Twin", []),
    ("id-6", "d/another.md", "twin", []),
]


def table_of(notes: list[tuple[str, str, str, list[str]]]) -> LinkTable:
    table = LinkTable()
    for note in notes:
        table.add(*note)
    return table


def test_scanned_links_have_a_target_and_a_display_text() -> None:
    """behaviour 2."""
    assert scan_links("[[a]] x [[a|b]] [[dir/a]] [[ a | b ]] [[a|]] [[a]]") == [
        WikiLink("a", "a"),
        WikiLink("a", "b"),
        WikiLink("dir/a", "dir/a"),
        WikiLink("a", "b"),
        WikiLink("a", "a"),
        WikiLink("a", "a"),
    ]


def test_index_expression_is_not_a_link() -> None:
    """behaviour 3."""
    assert scan_links("arr[[0]] [[1, 2]] [[ ]] [[]] [[|x]] [a] [[a[b]]") == []
    assert scan_links("[[日本語]] [[é]] [[x[[inner]]]]") == [
        WikiLink("日本語", "日本語"),
        WikiLink("é", "é"),
        WikiLink("inner", "inner"),
    ]


def test_links_may_span_lines_but_may_not_be_in_code() -> None:
    assert scan_links("```\n[[in code]]\n```\n`[[x]]` [[two\n  words]]") == [
        WikiLink("two words", "two words")
    ]


@pytest.mark.parametrize(
    "content", ["[[" * 200_000, "[[a|" * 100_000, "[[" + "a" * 400_000, "[[a\n" + " " * 400_000]
)
def test_scanning_broken_links_takes_linear_time(content: str) -> None:
    assert scan_links(content) == []
    for gap in ("\n ", " ", "\n"):
        assert scan_links("[[a" + gap * 200_000 + "b]]")[0].target.startswith("a ")


@pytest.mark.parametrize(
    ("target", "note"),
    [
        ("guide", "id-1"),
        ("guide.md", "id-1"),
        ("docs/setup", "id-2"),
        ("setup", "id-2"),
        ("elsewhere/setup.md", "id-2"),
        ("a/same", "id-3"),
        ("same", None),
        ("x/same", None),
        ("id-4", "id-4"),
        ("MANUAL", "id-1"),
        ("shared", "id-3"),
        ("user-guide", "id-1"),
        ("set up-steps", "id-2"),
        ("TWIN", "id-5"),
        ("Guide", None),
        ("missing", None),
    ],
)
def test_target_resolves_in_the_order_path_stem_id_alias_title(target: str, note: str | None) -> None:
    assert table_of(NOTES).resolve(target) == note


def test_link_table_is_independent_of_the_order_of_added_notes() -> None:
    targets = ["same", "shared", "twin", "guide", "setup"]
    expected = [table_of(NOTES).resolve(target) for target in targets]
    for order in list(permutations(NOTES))[::37]:
        assert [table_of(list(order)).resolve(target) for target in targets] == expected


def test_earlier_resolution_rule_takes_precedence_over_later_rules() -> None:
    table = table_of([("1", "x/topic.md", "One", []), ("2", "y/two.md", "topic", ["topic"])])
    assert table.resolve("topic") == "1"
    table.add("3", "topic.md", "Three")
    assert table.resolve("topic") == "3"
    assert not table.candidates("topic")


def test_ambiguous_stem_is_unresolved_even_if_an_alias_matches() -> None:
    table = table_of([*NOTES, ("id-7", "e/seven.md", "Same", ["same"])])
    assert table.resolve("same") is None
    assert table.candidates("same")
    assert not table.candidates("a/same")
    assert not table.candidates("missing")
    table.remove("id-4")
    assert table.resolve("same") == "id-3"


def test_note_added_again_replaces_its_entry_and_removed_note_disappears() -> None:
    table = table_of(NOTES)
    table.add("id-1", "moved.md", "New Title", ["Handbook"])
    assert len(table) == len(NOTES)
    assert table.resolve("guide") is None
    assert table.resolve("handbook") == table.resolve("new title") == "id-1"
    for note_id, *_ in NOTES:
        table.remove(note_id)
    table.remove("unknown")
    assert len(table) == 0
    assert table == LinkTable()


def test_composed_and_decomposed_names_match() -> None:
    assert table_of([("1", "cafe\u0301.md", "T", [])]).resolve("caf\u00e9") == "1"


@given(st.lists(st.sampled_from(NOTES), unique_by=lambda note: note[0]), st.sampled_from(NOTES), st.data())
def test_target_resolution_changes_only_with_notes_sharing_a_key(
    notes: list[tuple[str, str, str, list[str]]], added: tuple[str, str, str, list[str]], data: st.DataObject
) -> None:
    target = data.draw(
        st.sampled_from(["guide", "same", "shared", "twin", "id-2", "set up steps", "b/same.md"])
    )
    table = table_of([note for note in notes if note[0] != added[0]])
    before = table.resolve(target)
    table.add(*added)
    if table.resolve(target) != before:
        assert note_keys(*added) & set(target_keys(target))


def test_source_ids_are_trimmed_lowercased_unique_and_sorted() -> None:
    """behaviour 40."""
    assert normalise_sources([f" {B.upper()} ", A, B], None) == (A, B)
    assert normalise_sources([], A) == ()


@pytest.mark.parametrize(
    "source", ["", "  ", "My Title", "my-slug", "a/b.md", A[:-1], A + "0", A.replace("-", ""), A + "\nx"]
)
def test_invalid_source_ids_are_refused(source: str) -> None:
    """behaviour 41."""
    with pytest.raises(InvalidInput, match="derived_from_ids"):
        normalise_sources([A, source], None)


def test_note_cannot_derive_from_itself() -> None:
    """behaviour 41."""
    with pytest.raises(InvalidInput, match="itself"):
        normalise_sources([B, A.upper()], A)


def test_anchor_is_ignored_unless_a_note_has_the_full_name() -> None:
    table = LinkTable()
    table.add("a", "docs/setup.md", "Setup")
    table.add("b", "langs/c-sharp.md", "C#")
    assert table.resolve("Setup#First steps") == "a"
    assert table.resolve("docs/setup#^block") == "a"
    assert table.resolve("C#") == "b"
    assert table.resolve("#First steps") is None


_PIECES = st.sampled_from(
    ["a", "B", "-", " ", "/", ".md", ".MD", "\t", ".", "#", "_", "é", "ß", "İ", "e\u0301"]
)


@given(st.lists(_PIECES, max_size=8).map("".join))
@example(" /")
def test_target_names_equal_the_names_of_the_target_keys(target: str) -> None:
    assert target_names(target) == names_of(target_keys(target))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("One. See [[Target]] for it. Two.", "See [[Target]] for it."),
        ("First line\n* an item with [[target|a name]]\nlast", "* an item with [[target|a name]]"),
        ("Read. [Dr. Who](folder/target.md) says so! Next.", "[Dr. Who](folder/target.md) says so!"),
        ("He met [[Mr. No]] first. Then [[Target]]", "Then [[Target]]"),
        ("[[Other]] and ``[[Target]]``", ""),
        ("Nothing leads there.", ""),
        ("a" * 5_000 + " [[Target]] " + "b" * 5_000, "a" * 999 + " [[Target]] " + "b" * 989),
    ],
)
def test_sentence_around_a_link_is_extracted(content: str, sentence: str) -> None:
    keys = note_keys("an-id", "folder/target.md", "Target", ())
    assert linking_sentence(content, "note.md", keys) == sentence
