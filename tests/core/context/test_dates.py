"""The date that a note gives itself."""

from __future__ import annotations

import pytest

from lithos.core.context.dates import own_date, read_date


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05-03", "2024-05-03"),
        ("2024-05-03T10:15:00Z", "2024-05-03"),
        ("Standup 2024_05_03", "2024-05-03"),
        ("202405031030 zettel", "2024-05-03"),
        ("20240503", "2024-05-03"),
        ("03.05.2024", "2024-05-03"),
        ("1:56 pm on 8 May, 2023", "2023-05-08"),
        ("May 3rd, 2024", "2024-05-03"),
        ("3rd of Sept. 2024", "2024-09-03"),
        ("Retro May 2024", "2024-05"),
        ("2024-05 plan", "2024-05"),
        ("25/12/2023", "2023-12-25"),
        ("12/25/2023", "2023-12-25"),
        ("5/3/2024", None),
        ("5/5/2024", "2024-05-05"),
        ("2024-02-30", None),
        ("version 1.2024.05", None),
        ("call 020240503", None),
        ("Maybe 2024", None),
        ("2024", None),
    ],
)
def test_date_in_a_title_is_read_in_common_forms(text: str, expected: str | None) -> None:
    found = read_date(text)
    assert (None if found is None else str(found)) == expected


def test_frontmatter_wins_over_title_and_title_over_text() -> None:
    text = "Date: 3 March 2022\n\nText."
    given = {"date": "2024-05-03"}
    assert str(own_date(given, "Meeting 2023-01-01", "a.md", text)) == "2024-05-03"
    assert str(own_date({"date": "soon"}, "Meeting 2023-01-01", "a.md", text)) == "2023-01-01"
    assert str(own_date({}, "Meeting", "log/2023-02-02.md", text)) == "2023-02-02"
    assert str(own_date({}, "Meeting", "a.md", text)) == "2022-03-03"
    assert own_date({}, "Meeting", "a.md", "We met on 3 March 2022.") is None


def test_words_name_the_day_the_month_and_the_year() -> None:
    found = read_date("2024-05-03")
    assert found is not None
    assert found.words == "2024-05-03 3 May 2024"


@pytest.mark.parametrize("text", ["2024-" * 40, "9" * 200, "may " * 50, "1." * 100])
def test_long_text_without_a_date_has_none(text: str) -> None:
    assert read_date(text) is None
