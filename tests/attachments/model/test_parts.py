"""Cleaning of text from foreign files (behaviour 290)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.attachments.model.parts import LONGEST_PLACE, Places, clean


@pytest.mark.parametrize(
    ("given_text", "cleaned"),
    [
        ("exam-\nple", "example"),
        ("exam-\r\n  ple", "example"),
        ("exam\u00ad\nple", "example"),
        ("exam\x02ple", "example"),
        ("exam\ufffe\r\nple", "example"),
        ("ex\u00adam\u00adple", "example"),
        ("Rhein-\nMain", "Rhein-\nMain"),
        ("Rhein\x02Main", "Rhein-Main"),
        ("1-\n2", "1-\n2"),
        ("a -\nb", "a -\nb"),
        ("- one\n- two", "- one\n- two"),
        ("Cafe\u0301", "Café"),
        ("a\x00b\x07c\td\x0ce\u2028f\x85g", "abc d\ne\nf\ng"),
        ("\ud83d\ude00 \ud83d \ude00", "😀 \ufffd \ufffd"),
        ("  \n a \n ", "a"),
        ("\ufeff", ""),
        ("", ""),
    ],
)
def test_cleaned_text_is_normalised_without_control_characters(given_text: str, cleaned: str):
    assert clean(given_text) == cleaned


@given(
    st.text(
        st.characters(codec=None, categories=("Cs", "Cc", "Cf", "Lu", "Ll", "Mn", "Zs", "Pd")), max_size=60
    )
)
def test_cleaned_text_can_be_stored_and_has_no_control_characters(text: str):
    cleaned = clean(text)
    cleaned.encode()
    assert not any(sign < " " and sign != "\n" for sign in cleaned)
    assert clean(cleaned) == cleaned


def test_cleaning_long_runs_of_combining_marks_is_not_quadratic():
    """UAX #15 sorts each run of combining marks. Without a limit, 400,000 marks would take minutes."""
    assert clean("a" + "\u0301\u0316" * 200_000)


def test_places_in_a_file_have_unique_names():
    places = Places()
    names = [
        places.name(wanted, f"node {number}")
        for number, wanted in enumerate(["a", "a", 7, None, "", "b\n", "a"])
    ]
    assert names == ["a", "a (2)", "node 2", "node 3", "node 4", "b", "a (3)"]
    assert len(places.name("x" * 5_000, "")) == LONGEST_PLACE
