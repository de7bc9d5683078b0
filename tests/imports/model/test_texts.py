"""Encodings, dates, tags and relation types of other programs (behaviour 240)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from lithos.imports.model.texts import (
    clean,
    clean_line,
    decode,
    digest,
    parse_moment,
    relation_type,
    tag_of,
    tags_of,
)

MOMENT = datetime(2023, 11, 9, 20, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        1699560000,
        1699560000.0,
        1699560000000,
        1699560000000000,
        1699560000000000000,
        "1699560000",
        "1699560000.0",
        "2023-11-09T20:00:00Z",
        "2023-11-09T20:00:00.000000000Z",
        "2023-11-09T21:00:00+01:00",
        "2023-11-09 20:00:00",
        "2023-11-09 20:00:00 UTC",
        "20231109T200000Z",
        "Thu, 09 Nov 2023 20:00:00 +0000",
        "Thu, 09 Nov 2023 15:00:00 EST",
        "2023/11/09 20:00:00",
        "09.11.2023 20:00",
        "November 9, 2023 08:00 PM",
        MOMENT,
    ],
)
def test_time_is_read_in_each_format(value: object) -> None:
    """behaviour 240"""
    assert parse_moment(value) == MOMENT


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "",
        "yesterday",
        "2024-02-30",
        float("nan"),
        float("inf"),
        1e300,
        10**400,
        -1e30,
        [],
        {},
        "9" * 500,
    ],
)
def test_invalid_time_is_read_as_none(value: object) -> None:
    """behaviour 241"""
    assert parse_moment(value) is None


def test_days_before_1970_are_valid_times() -> None:
    """behaviour 240"""
    assert parse_moment(-86_400) == datetime(1969, 12, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("works at", "works_at"),
        ("Relates-To", "related_to"),
        ("relates_to", "related_to"),
        ("depends_on", "depends_on"),
        ("gehört zu", "gehört_zu"),
        ("→", "related_to"),
        ("x" * 900, "x" * 200),
    ],
)
def test_relation_name_is_converted_to_an_edge_type(written: str, name: str) -> None:
    """behaviour 240"""
    assert relation_type(written) == name


def test_imported_tags_have_no_spaces_and_are_unique() -> None:
    """behaviour 240"""
    assert tags_of(["Rail Company", "#kaffee", " ", "[x]", "Rail Company", "ünï/code"]) == (
        "Rail-Company", "kaffee", "x", "ünï/code",
    )  # fmt: skip
    assert tag_of("#") == ""


def test_invalid_characters_are_removed_from_imported_text() -> None:
    """behaviour 241"""
    assert clean("a\0b\r\nc\rd\ud800e\U0001f600") == "ab\nc\nd\ufffde\U0001f600"
    assert clean_line(" a\n\nb\0 ", 10) == "a b"
    assert clean_line(7) == ""
    assert clean_line("x" * 99, 10) == "x" * 10


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_text_encoding_is_detected(encoding: str) -> None:
    """behaviour 241"""
    assert decode("Rösten, café".encode(encoding)) == "Rösten, café"


def test_digest_depends_on_the_boundaries_between_parts() -> None:
    """behaviour 240"""
    assert len({digest(parts) for parts in (("ab",), ("a", "b"), ("", "ab"), ("ab", ""), ("\ud800",))}) == 5
