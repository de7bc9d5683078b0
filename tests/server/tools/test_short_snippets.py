"""Snippets for answers with little space: choice of sentences."""

from __future__ import annotations

import json

import pytest

from lithos.server.tools.short_snippets import LEAST, escaped_length, rooms, shorten
from lithos.text.snippet import Terms

TEXT = (
    "The harbour was built in 1893. Ships of 40 metres can moor there.\nWhere is the office? It is in the "
    "lighthouse at the end of the mole. The office opens at noon, i.e. late. Fishing is allowed in winter."
)


def short(query: str, most: int, text: str = TEXT) -> str:
    return shorten(text, Terms.of(query, {}), most)


def test_short_snippets_are_not_cut() -> None:
    assert short("harbour", escaped_length(TEXT)) == TEXT


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("harbour built", "The harbour was built in 1893."),
        ("fishing winter", "Fishing is allowed in winter."),
        ("opens noon", "The office opens at noon, i.e. late."),
    ],
)
def test_best_matching_sentences_are_not_cut(query: str, shown: str) -> None:
    assert shown in short(query, 90)
    assert "i.e." in short("opens noon", 90)
    assert len(short(query, 90)) <= 90


def test_snippet_includes_the_reply_after_a_question() -> None:
    """Behaviour 304."""
    shown = short("where is the office", 100)
    assert "Where is the office? It is in the lighthouse" in shown


@pytest.mark.parametrize("most", [LEAST, 80, 120, 200])
@pytest.mark.parametrize(
    "text",
    [
        TEXT, "word " * 100, "x" * 500, 'say "yes" ' * 60, "zeile\n" * 80, "港の事務所は灯台にある。" * 40,
        "ﬁ ẞtraße " * 60,
    ],
)  # fmt: skip
def test_shortened_snippets_stay_within_their_limit(text: str, most: int) -> None:
    for query in ("office lighthouse", "yes", "港", "nothing of it", ""):
        shown = short(query, most, text)
        assert shown
        assert len(json.dumps(shown, ensure_ascii=False)) - 2 <= most


def test_long_sentences_are_cut_around_their_match() -> None:
    text = "before " * 40 + "the lighthouse stands " + "after " * 40
    assert "lighthouse" in short("lighthouse", 80, text)
    assert short("lighthouse", 80, text).startswith("...")


def test_first_rows_get_more_snippet_space_within_the_total() -> None:
    assert rooms(0, 100) == []
    shares = rooms(10, 1_600)
    assert sum(shares) <= 1_600
    assert shares[:3] == [4 * shares[3], 3 * shares[3], 2 * shares[3]]
    assert rooms(2, 10) == [LEAST, LEAST]
