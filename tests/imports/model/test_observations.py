"""Observations and relations of basic-memory notes (behaviour 240)."""

from __future__ import annotations

import pytest

from lithos.imports.model.observations import permalink_of, read_observation, read_relation, read_statements


@pytest.mark.parametrize(
    ("item", "tags"),
    [
        ("[method] Pour over #brewing (morning)", ("method", "brewing")),
        ("[two words] text", ("two-words",)),
        ("text #a #b.", ("a", "b")),
        ("[b] one letter is a category", ("b",)),
        ("[x] done", None),
        ("[X] done", None),
        ("[ ] open", None),
        ("[/] begun", None),
        ("[00:01:30] spoken", None),
        ("[1:02:03.500 - 1:02:09] spoken", None),
        ("[00:01:30] spoken #tag", ("tag",)),
        ("[link](https://e.org)", None),
        ("[[Page]]", None),
        ("[method]without a blank", None),
        ("color:#fff is no tag", None),
        ("plain", None),
    ],
)
def test_observation_category_and_tags_are_read(item: str, tags: tuple[str, ...] | None) -> None:
    """behaviour 240"""
    assert read_observation(item) == tags


@pytest.mark.parametrize(
    ("item", "relation"),
    [
        ("implements [[Search Design]]", ("implements", "Search Design")),
        ("relates_to [[A]] (because)", ("related_to", "A")),
        ('"is part of" [[A|shown]]', ("is_part_of", "A")),
        ("'is part of' [[A]] (x (y))", ("is_part_of", "A")),
        ("is part of [[A]]", None),
        ("[[A]]", None),
        ("uses [[A]] and [[B]]", None),
        ("uses [[A]] (one) and (two)", None),
        ("uses [[ ]]", None),
        ("uses [[A", None),
        ("uses [[A]] #bm:links_to", None),
    ],
)
def test_relation_type_and_target_are_read(item: str, relation: tuple[str, str] | None) -> None:
    """behaviour 240"""
    assert read_relation(item) == relation


def test_list_items_are_read_except_in_code_and_quotes() -> None:
    """behaviour 240"""
    found = read_statements(
        "text #no\n\n* [a] x\n  - uses [[B]]\n+ [c] y #d\n\n> - [e] quoted\n\n"
        "```\n- [f] z\n```\n`- [g] z`\n- uses [[B]]"
    )
    assert found.tags == ("a", "c", "d")
    assert found.relations == (("uses", "B"),)


def test_permalink_is_derived_from_the_address_or_title() -> None:
    """behaviour 240"""
    assert (
        permalink_of("memory://specs/Search Design")
        == permalink_of("specs/search_design.md")
        == "specs/search-design"
    )
