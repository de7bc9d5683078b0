"""Names, properties and days in Logseq pages (behaviour 369)."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.imports.model import logseq
from lithos.imports.model.logseq import (
    Settings,
    names_in,
    page_name,
    read_day,
    read_properties,
    read_settings,
    write_day,
)

DAY = date(2026, 11, 28)


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("project___alpha", "project/alpha"),
        ("a___b___c", "a/b/c"),
        ("project%2Falpha", "project/alpha"),
        ("what%3F", "what?"),
        ("C%2B%2B", "C++"),
        ("under_score__d", "under_score__d"),
        ("100%", "100%"),
        ("%E4%BD%A0", "你"),
        ("plain", "plain"),
    ],
)
def test_page_names_are_derived_from_file_names(stem: str, name: str) -> None:
    """behaviour 369"""
    assert page_name(stem) == name


@pytest.mark.parametrize(
    "content",
    [
        "title:: project/alpha\nalias:: Alpha One, [[Alpha, Two]]\n"
        "tags:: work, #[[deep dive]], [[Page A]]\ntype:: x\n\n- The plan",
        "- title:: project/alpha\n  alias:: Alpha One, [[Alpha, Two]]\n"
        "  tags:: work, #[[deep dive]], [[Page A]]\n  type:: x\n- The plan",
        "TITLE:: project/alpha\r\nalias:: Alpha One, [[Alpha, Two]]\r\n"
        "tags:: work, #[[deep dive]], [[Page A]]\r\nid:: u\r\ntype:: x\r\n- p",
    ],
)
def test_page_properties_are_read(content: str) -> None:
    """behaviour 369: page properties are in the first lines or in the first block."""
    found = read_properties(content)
    assert found.title == "project/alpha"
    assert found.aliases == ("Alpha One", "Alpha, Two")
    assert found.tags == ("work", "deep dive", "Page A")
    assert dict(found.others) == {"type": "x"}


@pytest.mark.parametrize(
    "content",
    [
        "- A block\n  title:: of the block\n",
        "- a\n- title:: x\n",
        "text\ntitle:: x\n",
        "\ntitle:: x\n",
        "std::string x\n",
        "",
        "a:: ",
    ],
)
def test_block_properties_are_not_page_properties(content: str) -> None:
    """behaviour 369"""
    assert read_properties(content).title is None


def test_comments_in_logseq_settings_are_ignored() -> None:
    text = (
        ';; :journal/page-title-format "yyyy"\n{:pages-directory "p" ; x\n'
        ' :journal/page-title-format "dd-MM-yyyy"\n}'
    )
    assert read_settings(text) == Settings(title_format="dd-MM-yyyy", pages="p")
    assert read_settings("{}") == Settings()


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("Nov 28th, 2026", "MMM do, yyyy"),
        ("november 28th, 2026", "MMM do, yyyy"),
        ("28th Nov 2026", "MMM do, yyyy"),
        ("2026-11-28", "MMM do, yyyy"),
        ("2026_11_28", "MMM do, yyyy"),
        ("2026/11/28", "MMM do, yyyy"),
        ("20261128", "MMM do, yyyy"),
        ("2026-11-28 Saturday", "MMM do, yyyy"),
        ("Sat, 28-11-2026", "MMM do, yyyy"),
        ("Saturday, 11/28/2026", "MMM do, yyyy"),
        ("2026年11月28日", "MMM do, yyyy"),
        ("28.11.2026", "dd.MM.yyyy"),
    ],
)
def test_days_are_read_in_each_format(text: str, own: str) -> None:
    """behaviour 369"""
    assert read_day(text, own) == DAY


@pytest.mark.parametrize(
    "text", ["Nov 31st, 2026", "05-06-2026", "Page 2026", "2026", "28-28-2026", "x" * 300]
)
def test_page_names_in_other_formats_are_not_read_as_days(text: str) -> None:
    """behaviour 369: an ambiguous day is not read unless the settings define the format."""
    assert read_day(text, logseq.TITLE_FORMAT) is None


def test_settings_define_the_format_of_ambiguous_days() -> None:
    """behaviour 369"""
    assert read_day("05-06-2026", "dd-MM-yyyy") == date(2026, 6, 5)
    assert read_day("05-06-2026", "MM-dd-yyyy") == date(2026, 5, 6)


@given(st.dates(min_value=date(1000, 1, 1)), st.sampled_from(logseq._FORMATS))
def test_formatted_day_is_read_as_the_same_day(day: date, day_format: str) -> None:
    """behaviour 369"""
    assert read_day(write_day(day, day_format), logseq.TITLE_FORMAT) == day


@given(st.text(max_size=200))
def test_arbitrary_text_is_read_without_an_error(text: str) -> None:
    read_properties(text)
    read_settings(text)
    names_in(text)
    page_name(text)
    read_day(text, text)
