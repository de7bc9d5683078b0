from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithos.text.query import (
    MAX_DEPTH,
    Beginning,
    Boolean,
    Boosted,
    Dated,
    Node,
    Occur,
    Phrase,
    QuerySyntaxError,
    Word,
    begin_last,
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
def test_query_is_parsed_into_the_expected_tree(query: str, tree: Node) -> None:
    assert parse_query(query) == tree


@pytest.mark.parametrize(
    "query",
    ['"open', 'a"', "(a", "a)", "()", "a (", "author:x", "http://x", "title:", "title:AND b", "title:body:x",
     "AND a", "a AND", "a OR", "NOT", "a OR OR b", "NOT NOT a", "+", "a - b", "a (b -)", "--a", '""'],
)  # fmt: skip
def test_invalid_query_raises_a_syntax_error(query: str) -> None:
    with pytest.raises(QuerySyntaxError):
        parse_query(query)


def test_blank_query_has_no_tree() -> None:
    assert parse_query(" \n\u3000") is None
    assert plain_words(" \n ") is None
    assert plain_words("?!") is None


def test_deeply_nested_query_raises_a_syntax_error() -> None:
    assert parse_query("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH) == w("a")
    for query in ("(" * (MAX_DEPTH + 1) + "a" + ")" * (MAX_DEPTH + 1), "(" * 100_000, "-(" * 5000):
        with pytest.raises(QuerySyntaxError):
            parse_query(query)


def test_query_over_1000_words_is_refused_but_plain_words_cut() -> None:
    assert isinstance(parse_query("a " * 1000), Boolean)
    with pytest.raises(QuerySyntaxError):
        parse_query("a " * 1001)
    plain = plain_words("a " * 5000)
    assert isinstance(plain, Boolean)
    assert len(plain.clauses) == 1000


@given(SYNTAX)
def test_any_text_is_parsed_or_raises_a_syntax_error(text: str) -> None:
    try:
        tree = parse_query(text)
    except QuerySyntaxError:
        return
    assert (tree is None) == (not text.strip())


@given(SYNTAX)
def test_any_text_is_accepted_as_plain_words(text: str) -> None:
    tree = plain_words(text)
    clauses = tree.clauses if isinstance(tree, Boolean) else ((Occur.SHOULD, tree),)
    assert all(occur is Occur.SHOULD for occur, _ in clauses)


def test_query_syntax_in_plain_words_is_treated_as_text() -> None:
    assert plain_words('-Foo AND title:"Bar') == should(w("foo"), w("and"), w("title"), w("bar"))
    assert plain_words("東京tower") == should(w("東京"), w("tower"))


def test_excluded_words_do_not_count_as_query_words() -> None:
    assert words_of(parse_query('+Big title:"red Dog" -cat (x NOT y)')) == "Big red Dog x"


@pytest.mark.parametrize(
    ("query", "tree"),
    [
        ("flour^3", Boosted(w("flour"), 3)),
        ("title:flour^2.5", Boosted(w("flour", "title"), 2.5)),
        ("a b^0.5", should(w("a"), Boosted(w("b"), 0.5))),
        ("+a^2 b", Boolean(((Occur.MUST, Boosted(w("a"), 2)), (Occur.SHOULD, w("b"))))),
        ("-a^2", without(Boosted(w("a"), 2))),
        ("a^1", w("a")),
        ('"a b"~3', Phrase(None, "a b", 3)),
        ('body:"a b"~3^2', Boosted(Phrase("body", "a b", 3), 2)),
        ('"a b"^2', Boosted(Phrase(None, "a b"), 2)),
        ('"a b"~0', Phrase(None, "a b")),
        ('"a b" ~3', should(Phrase(None, "a b"), w("~3"))),
        ("(a b)^2 c", should(Boosted(should(w("a"), w("b")), 2), w("c"))),
        ("flo*", Beginning("flo")),
        ("title:Flö*^2", Boosted(Beginning("flo", "title"), 2)),
        ("x^y", w("x^y")),
        ("C^", w("C^")),
        ("**bold**", w("**bold**")),
        ("~/notes", w("~/notes")),
        ("what?", w("what?")),
    ],
)
def test_boosts_slops_and_prefixes_are_parsed(query: str, tree: Node) -> None:
    """behaviour 379"""
    assert parse_query(query) == tree


@pytest.mark.parametrize(
    ("query", "position", "why"),
    [
        ("a flour^0", 2, "above 0"),
        ("flour^-2", 0, "above 0"),
        ("flour^101", 0, "at most 100"),
        ('"a b"^x', 1, "above 0"),
        ('"a b"^', 1, "above 0"),
        ('"a b"~', 1, "from 0 to 100"),
        ('"a b"~-1', 1, "from 0 to 100"),
        ('"a b"~101', 1, "from 0 to 100"),
        ('"東京 大阪"~2', 1, "leave out the ~"),
        ("(a b)~2", 4, "phrase"),
        ("flour~", 0, "Write 'flour'"),
        ("flour~0.8", 0, "Write 'flour'"),
        ("f*", 0, "at least 2"),
        ("a-b*", 0, "a single word"),
        ("((a^50)^3)", 6, "product of nested"),
        ("tag:x", 0, "separate filters"),
    ],
)
def test_unsupported_query_syntax_is_refused_with_an_alternative(query: str, position: int, why: str) -> None:
    """behaviour 379"""
    with pytest.raises(QuerySyntaxError, match=why) as caught:
        parse_query(query)
    assert caught.value.position == position


def test_boosts_and_slops_do_not_count_as_words() -> None:
    """behaviour 379: neither plain words nor the words of a query contain numbers of boosts or slops."""
    assert plain_words('flour^3 "a b"~2 rye^0.5') == plain_words('flour "a b" rye')
    assert plain_words("2^10 and x ^3 ~5") == plain_words("2 10 and x 3 5")
    assert words_of(parse_query('flour^3 "a b"~2 (c d)^2 -e^2 be*')).split() == ["flour", "a", "b", "c", "d"]


def test_time_in_a_query_becomes_a_separate_clause() -> None:
    dated = Dated(("2023-05",))
    assert plain_words("Anna, May 2023") == should(dated, w("anna"), w("may"), w("2023"))
    assert parse_query("Anna May 2023") == should(dated, w("Anna"), w("May"), w("2023"))
    assert parse_query("Anna in 2023-05") == should(dated, w("Anna"), w("in"), w("2023-05"))
    assert parse_query("+Anna title:2023") == Boolean(
        ((Occur.MUST, w("Anna")), (Occur.SHOULD, w("2023", "title")))
    )
    assert words_of(parse_query("Anna May 2023")) == "Anna May 2023"
    typed = begin_last(plain_words("May 2023 stand"))
    assert isinstance(typed, Boolean)
    assert typed.clauses[-1] == (Occur.SHOULD, Beginning("stand"))
