from __future__ import annotations

from collections.abc import Sequence

from hypothesis import example, given
from hypothesis import strategies as st

from lithos.core.text.analysis import fold
from lithos.core.text.query import query_terms
from lithos.core.text.snippet import Terms, find_word
from lithos.core.text.snippet import make_snippet as cut_snippet


def make_snippet(title: str, content: str, terms: Sequence[str]) -> str:
    return cut_snippet(title, content, Terms.of(terms))


def test_without_a_match_the_beginning_is_shown() -> None:
    assert make_snippet("Title", "body", ["absent"]) == "# Title\n\nbody"
    assert make_snippet("T", "b" * 400, []) == "# T\n\n" + "b" * 295 + "..."


def test_a_match_has_150_characters_on_either_side() -> None:
    content = "x" * 300 + " needle " + "y" * 300
    assert make_snippet("T", content, ["needle"]) == "..." + "x" * 149 + " needle " + "y" * 149 + "..."
    assert make_snippet("T", "needle", ["needle"]) == "# T\n\nneedle"


def test_the_earliest_match_of_any_term_counts() -> None:
    content = "a " * 200 + "second " + "b " * 200 + "first"
    assert "second" in make_snippet("T", content, ["first", "second"])
    assert "first" not in make_snippet("T", content, ["first", "second"])


def test_a_match_in_the_title_counts() -> None:
    assert make_snippet("Needle", "b" * 400, ["needle"]).startswith("# Needle\n\nb")


def test_spellings_meet_and_the_original_is_shown() -> None:
    content = "ﬁ" * 500 + " Cafe\u0301 " + "e\u0301" * 300
    snippet = make_snippet("T", content, query_terms("CAFÉ"))
    assert snippet == "..." + "ﬁ" * 149 + " Cafe\u0301 " + ("e\u0301" * 300)[:149] + "..."


def test_words_match_at_their_beginning_and_other_scripts_anywhere() -> None:
    content = "the start " + "- " * 200 + "art_work" + " -" * 200
    assert "art_work" in make_snippet("T", content, ["art"])
    chinese = "。" * 400 + "中文搜索引擎" + "。" * 400
    assert "搜索" in make_snippet("T", chinese, query_terms("搜索"))
    assert "搜索" in make_snippet("T", chinese, query_terms("全文搜索"))


def test_words_with_vowel_signs_match_whole() -> None:
    content = ". " * 300 + " हिन्दी " + ". " * 300
    assert "हिन्दी" in make_snippet("T", content, query_terms("हिन्दी"))


def test_a_stemmed_hit_is_found_without_its_ending() -> None:
    for query, text in (
        ("running", "runs"),
        ("indexes", "indexing"),
        ("cities", "city"),
        ("Linked", "links"),
    ):
        assert f" {text} " in make_snippet("T", ". " * 300 + f" {text} " + ". " * 300, query_terms(query))


@given(st.text(max_size=40), st.text(max_size=10))
def test_any_text_and_query_give_a_piece_of_the_text(content: str, query: str) -> None:
    assert make_snippet("t", content, query_terms(query)).strip(".") in f"# t\n\n{content}"


@given(st.text("abcé_ -\u0941हन中1", max_size=60), st.text("abcé \u0941हन1", max_size=12))
@example("xab ab abc", "ab abc")
@example("हिन्दी हि", "हि")
def test_few_words_are_found_where_many_are(content: str, query: str) -> None:
    """The two ways to look for words agree."""
    words, folded = Terms.of(query_terms(query)).words, fold(content)
    assert find_word(folded, words) == find_word(folded, words, few=-1)
