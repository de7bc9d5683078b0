"""The own date of a note: the date that the note itself states."""

from __future__ import annotations

import pytest

from lithos.text.dates import OwnDate, asked_time, own_date, read_date, time_alone


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
        ("2024-05-03-standup", "2024-05-03"),
        ("2024-05-03_2", "2024-05-03"),
        ("standup-2024-05-03", "2024-05-03"),
        ("standup_2024_05", "2024-05"),
        ("2024-05-plan", "2024-05"),
        ("IMG_20240503_1015", "2024-05-03"),
        ("2024-05-030", None),
        ("1-2024-05-03", None),
        ("v2024-05-03", None),
        ("May 2023-24", None),
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
def test_title_date_is_read_in_common_forms(text: str, expected: str | None) -> None:
    found = read_date(text)
    assert (None if found is None else str(found)) == expected


def test_own_date_is_taken_from_frontmatter_then_title_then_text() -> None:
    text = "Date: 3 March 2022\n\nText."
    given = {"date": "2024-05-03"}
    assert str(own_date(given, "Meeting 2023-01-01", "a.md", text)) == "2024-05-03"
    assert str(own_date({"date": "soon"}, "Meeting 2023-01-01", "a.md", text)) == "2023-01-01"
    assert str(own_date({}, "Meeting", "log/2023-02-02.md", text)) == "2023-02-02"
    assert str(own_date({}, "Meeting", "a.md", text)) == "2022-03-03"
    assert own_date({}, "Meeting", "a.md", "We met on 3 March 2022.") is None


def test_date_words_name_the_day_month_and_year() -> None:
    found = read_date("2024-05-03")
    assert found is not None
    assert found.words == "2024-05-03 3 May 2024"


@pytest.mark.parametrize("text", ["2024-" * 40, "9" * 200, "may " * 50, "1." * 100])
def test_long_text_without_a_date_has_no_date(text: str) -> None:
    assert read_date(text) is None


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did Anna do in May 2023?", ("2023-05",)),
        ("what happened on 2023-05-08", ("2023-05-08", "2023-05")),
        ("Who called on the 8th of May?", ("-05-08", "-05")),
        ("Where were we on May 8?", ("-05-08", "-05")),
        ("What was planned for June 31?", ("-06",)),
        ("Was it in June, 5 people strong?", ("-06",)),
        ("Which talks were held in 2023?", ("2023",)),
        ("May we march on 8 of them?", ("-05",)),
        ("it may 8 times fail", None),
        ("the file of port 2023x", None),
    ],
)
def test_time_in_a_question_has_the_keys_of_matching_dates(
    question: str, expected: tuple[str, ...] | None
) -> None:
    asked = asked_time(question)
    assert (None if asked is None else asked.keys) == expected


def test_date_has_the_key_of_every_time_covering_the_date() -> None:
    own = OwnDate(2023, 5, 8)
    for question in ("8 May 2023", "May 2023", "2023", "May", "May 8", "9 May 2023", "June", "2024", "May 9"):
        asked = asked_time(question)
        assert asked is not None
        assert asked.covers(own) == (asked.keys[0] in own.keys), question
    assert OwnDate(2023, 5).keys == ("2023", "-05", "2023-05")


@pytest.mark.parametrize("text", ["8 May 2023", "2023-05-08", "May 8, 2023", "May", "2023", " May 8 "])
def test_text_that_contains_only_a_time_is_recognised(text: str) -> None:
    assert time_alone(text) == asked_time(text) is not None


@pytest.mark.parametrize("text", ["in May 2023", "May 2023 plan", "may", "", "2023x", "May " * 100])
def test_text_with_other_words_is_not_only_a_time(text: str) -> None:
    assert time_alone(text) is None
