from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.core.text.query import (
    MAX_DEPTH,
    Boolean,
    Node,
    Occur,
    Phrase,
    QuerySyntaxError,
    Word,
    parse_query,
    plain_words,
    words_of,
)

SYNTAX = st.lists(
    st.sampled_from(
        ["a", "b", '"', "(", ")", "+", "-", "AND", "OR", "NOT", "title:", "x:", " ", '"p q"', "日本"]
    )
).map("".join) | st.text(max_size=30)


def w(text: str, field: str | None = None) -> Word:
    return Word(field, text)


def should(*nodes: Node) -> Boolean:
    return Boolean(tuple((Occur.SHOULD, node) for node in nodes))


def must(*nodes: Node) -> Boolean:
    return Boolean(tuple((Occur.MUST, node) for node in nodes))


def without(node: Node) -> Boolean:
    return Boolean(((Occur.MUST_NOT, node),))


@pytest.mark.parametrize(
    ("query", "tree"),
    [
        ("alpha", w("alpha")),
        ("alpha beta", should(w("alpha"), w("beta"))),
        ("alpha OR beta", should(w("alpha"), w("beta"))),
        ("a AND b", must(w("a"), w("b"))),
        ("a OR b AND c", should(w("a"), must(w("b"), w("c")))),
        ("a b AND c d", should(w("a"), must(w("b"), w("c")), w("d"))),
        ("(a OR b) AND c", must(should(w("a"), w("b")), w("c"))),
        ('"two words"', Phrase(None, "two words")),
        ("+a b -c", Boolean(((Occur.MUST, w("a")), (Occur.SHOULD, w("b")), (Occur.MUST_NOT, w("c"))))),
        ("a NOT b", Boolean(((Occur.SHOULD, w("a")), (Occur.MUST_NOT, w("b"))))),
        ("a AND NOT b", Boolean(((Occur.MUST, w("a")), (Occur.MUST_NOT, w("b"))))),
        ("a OR NOT b", should(w("a"), without(w("b")))),
        ("-a", without(w("a"))),
        ("-(a b)", without(should(w("a"), w("b")))),
        ("title:a", w("a", "title")),
        ('body:"a b"', Phrase("body", "a b")),
        ("-entities:x y", Boolean(((Occur.MUST_NOT, w("x", "entities")), (Occur.SHOULD, w("y"))))),
        ("title:(a b)", should(w("a", "title"), w("b", "title"))),
        ("c++ foo-bar don't 12:30", should(w("c++"), w("foo-bar"), w("don't"), w("12:30"))),
        ("ANDROID and OR1", should(w("ANDROID"), w("and"), w("OR1"))),
        ("a\u3000b", should(w("a"), w("b"))),
    ],
)
def test_the_query_language_parses_to_its_tree(query: str, tree: Node) -> None:
    assert parse_query(query) == tree


@pytest.mark.parametrize(
    "query",
    ['"open', 'a"', "(a", "a)", "()", "a (", "author:x", "http://x", "title:", "title:AND b", "title:body:x",
     "AND a", "a AND", "a OR", "NOT", "a OR OR b", "NOT NOT a", "+", "a - b", "a (b -)", "--a", '""'],
)  # fmt: skip
def test_a_broken_query_is_a_syntax_error(query: str) -> None:
    with pytest.raises(QuerySyntaxError):
        parse_query(query)


def test_a_blank_query_has_no_tree() -> None:
    assert parse_query(" \n\u3000") is None
    assert plain_words(" \n ") is None
    assert plain_words("?!") is None


def test_deep_nesting_is_a_syntax_error() -> None:
    assert parse_query("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH) == w("a")
    for query in ("(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1), "(" * 100_000, "-(" * 5000):
        with pytest.raises(QuerySyntaxError):
            parse_query(query)


def test_more_than_a_thousand_words_are_a_syntax_error_but_plain_words_are_cut() -> None:
    assert isinstance(parse_query("a " * 1000), Boolean)
    with pytest.raises(QuerySyntaxError):
        parse_query("a " * 1001)
    plain = plain_words("a " * 5000)
    assert isinstance(plain, Boolean)
    assert len(plain.clauses) == 1000


@given(SYNTAX)
def test_any_text_parses_or_is_a_syntax_error(text: str) -> None:
    try:
        tree = parse_query(text)
    except QuerySyntaxError:
        return
    assert (tree is None) == (not text.strip())


@given(SYNTAX)
def test_plain_words_take_any_text(text: str) -> None:
    tree = plain_words(text)
    clauses = tree.clauses if isinstance(tree, Boolean) else ((Occur.SHOULD, tree),)
    assert all(occur is Occur.SHOULD for occur, _ in clauses)


def test_plain_words_treat_syntax_as_text() -> None:
    assert plain_words('-Foo AND title:"Bar') == should(w("foo"), w("and"), w("title"), w("bar"))
    assert plain_words("東京tower") == should(w("東京"), w("tower"))


def test_excluded_words_are_no_words_of_a_query() -> None:
    assert words_of(parse_query('+Big title:"red Dog" -cat (x NOT y)')) == "Big red Dog x"
