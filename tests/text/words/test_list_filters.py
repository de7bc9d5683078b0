"""List filters: metadata, tags and prefixes."""

from __future__ import annotations

import pytest

from lithos.kernel.values.errors import InvalidInput
from lithos.text.words.list_filters import (
    check_metadata_match,
    distinct_tags,
    has_all,
    has_tag,
    matches_metadata,
    most_written,
    tag_key,
)

RECORD = {
    "text": "a",
    "digit": "1",
    "number": 1,
    "float": 1.5,
    "yes": True,
    "no": False,
    "zero": 0,
    "many": ["a", 1, True, 2.0],
    "object": {"a": 1},
    "nested": [["a"], {"a": 1}],
    "none": None,
    "a.b[0]": "path-like",
}


@pytest.mark.parametrize(
    "match",
    [
        {"text": "a"},
        {"digit": "1"},
        {"number": 1},
        {"number": 1.0},
        {"float": 1.5},
        {"yes": True},
        {"zero": 0},
        {"many": "a"},
        {"many": 1},
        {"many": True},
        {"many": 2},
        {"text": "a", "number": 1},
        {"a.b[0]": "path-like"},
        {},
        None,
    ],
)
def test_record_matches_equal_scalars_and_lists_that_contain_them(match):
    assert matches_metadata(RECORD, match)


@pytest.mark.parametrize(
    "match",
    [
        {"text": "A"},
        {"digit": 1},
        {"number": "1"},
        {"number": True},
        {"yes": 1},
        {"yes": "true"},
        {"no": 0},
        {"zero": False},
        {"many": False},
        {"many": "1"},
        {"object": "a"},
        {"nested": "a"},
        {"none": "None"},
        {"none": False},
        {"missing": ""},
        {"text": "a", "number": 2},
        {"a": "path-like"},
    ],
)
def test_different_types_and_objects_never_match(match):
    assert not matches_metadata(RECORD, match)


def test_tuple_matches_in_the_same_way_as_a_list():
    assert matches_metadata({"k": ("a", "b")}, {"k": "b"})


@pytest.mark.parametrize("match", [None, {}, {"k": ""}, {"k": 0}, {"k": 1.5}, {"k": False}, {"Ä b": "x"}])
def test_filter_of_scalars_is_accepted(match):
    check_metadata_match(match)


@pytest.mark.parametrize("match", [{"": 1}, {"  ": 1}, {"k": None}, {"k": ["a"]}, {"k": {"a": 1}}])
def test_invalid_filter_is_refused_with_its_key(match):
    with pytest.raises(InvalidInput) as caught:
        check_metadata_match(match)
    (key,) = match
    assert key.strip() in caught.value.message
    assert "metadata_match" in caught.value.message


def test_record_must_contain_all_wanted_values():
    assert has_all(("a", "b", "c"), ("c", "a"))
    assert has_all(("a",), ("a", "a"))
    assert not has_all(("a",), ("a", "b"))
    assert not has_all((), ("a",))
    assert not has_all(("A",), ("a",))


def test_empty_filter_matches_every_record():
    assert has_all((), ())
    assert has_all((), None)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Work", "work"),
        ("#WORK", "work"),
        ("work/", "##Work"),
        ("w\u00f6rk", "WO\u0308RK"),
        ("STRASSE", "straße"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("❤\ufe0f", "❤"),
        ("✔\ufe0e", "#✔\ufe0f"),
        ("a/B/c", "A/b/C"),
    ],
)
def test_spellings_of_a_tag_count_as_one_tag(one, other):
    """behaviour 377"""
    assert tag_key(one) == tag_key(other) == tag_key(tag_key(one))
    assert has_tag([one], other)
    assert has_tag([other + "/below"], one)
    assert distinct_tags([other, one, "x"]) == (other, "x")


@pytest.mark.parametrize(
    ("one", "other"), [("work", "wörk"), ("a/b", "ab"), ("#", "/"), ("❤", "❤️‍🔥"), ("a", "")]
)
def test_different_tags_stay_different(one, other):
    assert tag_key(one) != tag_key(other)
    assert not has_tag([one], other)


def test_tag_is_shown_in_its_most_frequent_spelling():
    """behaviour 377"""
    assert most_written({"work": 2, "Work": 3, "WORK": 1}) == "Work"
    assert most_written({"work": 1, "Work": 1}) == "Work"
    assert most_written({"#a": 1}) == "a"
    assert most_written({"##": 1}) == "##"
