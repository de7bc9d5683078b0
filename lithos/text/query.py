"""The query language of full-text search, parsed to a syntax tree that is independent of the search engine.

Plain words are joined by `OR` and ranked. The language has `"phrase"`, `+must`, `-not`, `AND` (which binds
more tightly than `OR`), `NOT` and parentheses. The fields `title:`, `body:` and `entities:` apply to the next
word, phrase or parenthesis. `^3` directly after a word, phrase or parenthesis multiplies its score. `~3`
directly after a phrase allows its words to be three positions apart. `begin*` matches any word with that
beginning. Other query syntax is refused with an error that names the alternative.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, TypeAlias

from attrs import evolve, field, frozen

from lithos.text.dates import asked_time
from lithos.text.words.analysis import fold, words

FIELDS: Final = ("title", "body", "entities")
MAX_DEPTH: Final = 50
#: Maximum factor after `^`, and maximum number of positions after `~`.
MAX_BOOST: Final = 100.0
MAX_SLOP: Final = 100
MAX_WORDS: Final = 1000
_SHORTEST_BEGINNING: Final = 2


class QuerySyntaxError(ValueError):
    """Raised when a query cannot be parsed. A search with such a query matches nothing.

    `position` is the number of characters before the syntax error.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class Occur(Enum):
    """Effect of a clause on a search: the clause raises the rank, is required, or excludes notes."""

    SHOULD = "should"
    MUST = "must"
    MUST_NOT = "must_not"


@frozen
class Word:
    """A word as written. If `field` is None, the word is searched in all fields.

    A word may consist of several tokens (`foo-bar`) or of no token.
    """

    field: str | None
    text: str


@frozen
class Phrase:
    """Words that must occur in exactly this order. In scripts without spaces, consecutive characters.

    If `slop` is set, the positions of the words may differ by that number in total. Two swapped words differ
    by two.
    """

    field: str | None
    text: str
    slop: int = 0


@frozen
class Beginning:
    """The beginning of a word, of at least two characters."""

    text: str
    field: str | None = None


@frozen
class Boosted:
    """A node whose score is multiplied by `factor`."""

    node: Node
    factor: float


@frozen
class Boolean:
    """Joined clauses. If all clauses are `MUST_NOT`, every note that they do not exclude matches."""

    clauses: tuple[tuple[Occur, Node], ...]


@frozen
class Dated:
    """Matches notes whose own date has one of these keys (`text.dates`).

    The keys come from a time named in the query.
    """

    keys: tuple[str, ...]


Node: TypeAlias = Word | Phrase | Beginning | Boosted | Boolean | Dated

_TOKEN: Final = re.compile(
    r"""\s*(?:
        "(?P<phrase>[^"]*)"
      | (?P<quote>")
      | (?P<open>\() | (?P<close>\))
      | (?P<sign>[+-])(?![\s)]|$) | (?P<dangling>[+-])(?=[\s)]|$)
      | (?P<operator>AND|OR|NOT)(?![^\s()"])
      | (?P<field>[^\W\d]\w*):
      | (?P<word>[^\s()"]+)
    )""",
    re.VERBOSE,
)


#: Suffixes directly after a phrase or a closing parenthesis, and the end of a word.
_SUFFIX: Final = re.compile(r"(?:~(?P<slop>[^\s()\"^]*))?(?:\^(?P<boost>[^\s()\"]*))?")
_WORD_BOOST: Final = re.compile(r"(?s:(?P<word>.*[^^]))\^(?P<boost>-?[0-9]{1,9}(?:\.[0-9]{0,9})?)")
_FUZZY: Final = re.compile(r"[^\W\d_]\w*~[0-9.]*")
#: Boosts and slops after plain words, which have no effect in a plain search.
_PLAIN_SUFFIX: Final = re.compile(r"(?:(?<=[^\W\d_])|(?<=\"))[~^][0-9]+(?:\.[0-9]+)?(?=[\s)]|$)")


@frozen
class _Token:
    kind: str
    text: str
    position: int = field(default=0, eq=False)
    #: The numbers after `~` and `^`. None if the number is missing.
    slop: str | None = field(default=None, eq=False)
    boost: str | None = field(default=None, eq=False)


_OCCUR_OF_PREFIX: Final = {
    _Token("sign", "+"): Occur.MUST,
    _Token("sign", "-"): Occur.MUST_NOT,
    _Token("operator", "NOT"): Occur.MUST_NOT,
}


def parse_query(text: str) -> Node | None:
    """Return the syntax tree of `text`, or None if it is blank. Raises `QuerySyntaxError`."""
    if not text.strip():
        return None
    end = _Token("end", "", len(text.rstrip()))
    parser = _Parser([end, *list(_scan_tokens(text))[::-1]])
    tree = parser.read_sequence(None, depth=0)
    if parser.peek().kind == "close":
        raise QuerySyntaxError("a closing parenthesis has no opening parenthesis", parser.peek().position)
    return _with_time(tree)


def _with_time(tree: Node) -> Node:
    """Return the query, extended to match notes of the time that its ranked words name."""
    clauses = tree.clauses if isinstance(tree, Boolean) else ((Occur.SHOULD, tree),)
    ranked = [
        each.text
        for occur, each in clauses
        if occur is Occur.SHOULD and isinstance(each, Word) and each.field is None
    ]
    dated = _dated(" ".join(ranked))
    return Boolean((*dated, *clauses)) if dated else tree


def _dated(text: str) -> list[tuple[Occur, Node]]:
    asked = asked_time(text)
    return [] if asked is None else [(Occur.SHOULD, Dated(asked.keys))]


def plain_words(text: str) -> Node | None:
    """Return the plain words of a text without parsing query syntax. Return None if the text has no words.

    If the words name a time, notes of this time match too. The words are folded. Words after the first 1,000
    are ignored, and so are boosts and slops (`flour^3`).
    """
    found = words(fold(_PLAIN_SUFFIX.sub("", text) if "^" in text or "~" in text else text))[:MAX_WORDS]
    if not found:
        return None
    return _join([*_dated(text), *((Occur.SHOULD, Word(None, word)) for _, word in found)])


def begin_last(node: Node | None) -> Node | None:
    """Return the query in which the last word also matches as the beginning of a word.

    Only plain words are completed. Required and excluded words must match exactly.
    """
    clauses = node.clauses if isinstance(node, Boolean) else ((Occur.SHOULD, node),)
    if not all(
        occur is Occur.SHOULD and ((isinstance(each, Word) and not each.field) or isinstance(each, Dated))
        for occur, each in clauses
    ):
        return node
    last = words(fold(clauses[-1][1].text)) if isinstance(clauses[-1][1], Word) else []
    if not last or last[-1][0] or len(last[-1][1]) < _SHORTEST_BEGINNING:
        return node
    parts = [(occur, each) for occur, each in clauses if each is not None]
    return Boolean((*parts, (Occur.SHOULD, Beginning(last[-1][1]))))


def words_of(node: Node | None) -> str:
    """Return the text of a query without its syntax and its excluded clauses."""
    return " ".join(_included_texts(node))


def _included_texts(node: Node | None) -> Iterator[str]:
    if isinstance(node, Boolean):
        for occur, clause in node.clauses:
            if occur is not Occur.MUST_NOT:
                yield from _included_texts(clause)
    elif isinstance(node, Boosted):
        yield from _included_texts(node.node)
    elif node is not None and not isinstance(node, Beginning | Dated):
        yield node.text


def _scan_tokens(text: str) -> Iterator[_Token]:
    position, count, end = 0, 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position, end)
        assert match is not None
        assert match.lastgroup is not None
        token = _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))
        position = match.end()
        if token.kind in ("phrase", "close") and (suffix := _SUFFIX.match(text, position, end)):
            token = evolve(token, slop=suffix["slop"], boost=suffix["boost"])
            position = suffix.end()
        if token.kind == "quote":
            raise QuerySyntaxError("a quotation mark is not closed", token.position)
        count += token.kind in ("word", "phrase")
        if count > MAX_WORDS:
            raise QuerySyntaxError(f"the query has more than {MAX_WORDS} words", token.position)
        yield token


@frozen
class _Parser:
    """Recursive descent parser.

    The parser pops tokens from a reversed list. The end token always stays in the list.
    """

    tokens: list[_Token]

    def peek(self) -> _Token:
        return self.tokens[-1]

    def take(self) -> _Token:
        return self.tokens.pop() if len(self.tokens) > 1 else self.tokens[0]

    def accept(self, operator: str) -> bool:
        if self.peek() != _Token("operator", operator):
            return False
        self.take()
        return True

    def read_sequence(self, field: str | None, depth: int) -> Node:
        """Read clauses until a closing parenthesis or the end. `OR` between two clauses is optional."""
        if depth > MAX_DEPTH:
            raise QuerySyntaxError(
                f"parentheses are nested deeper than {MAX_DEPTH} levels", self.peek().position
            )
        clauses = [self.read_conjunction(field, depth)]
        while self.peek().kind not in ("close", "end"):
            if self.accept("OR"):
                clauses[-1] = _as_alternative(clauses[-1])
                clauses.append(_as_alternative(self.read_conjunction(field, depth)))
            else:
                clauses.append(self.read_conjunction(field, depth))
        return _join(clauses)

    def read_conjunction(self, field: str | None, depth: int) -> tuple[Occur, Node]:
        clauses = [self.read_clause(field, depth)]
        while self.accept("AND"):
            clauses.append(self.read_clause(field, depth))
        if len(clauses) == 1:
            return clauses[0]
        joined = [(Occur.MUST if occur is Occur.SHOULD else occur, node) for occur, node in clauses]
        return Occur.SHOULD, Boolean(tuple(joined))

    def read_clause(self, field: str | None, depth: int) -> tuple[Occur, Node]:
        occur = _OCCUR_OF_PREFIX.get(self.peek())
        if occur is not None:
            self.take()
        return occur or Occur.SHOULD, self.read_operand(field, depth)

    def read_operand(self, field: str | None, depth: int) -> Node:
        token = self.take()
        if token.kind == "field":
            if token.text not in FIELDS:
                raise QuerySyntaxError(
                    f"unknown field {token.text[:100]!r}; the fields are {', '.join(FIELDS)}; "
                    "tags, author and path are separate filters",
                    token.position,
                )
            field, token = token.text, self.take()
        if token.kind == "word":
            return _read_word(field, token)
        if token.kind == "phrase" and token.text.strip():
            return _boosted(Phrase(field, token.text, _read_slop(token)), token)
        if token.kind == "open":
            tree = self.read_sequence(field, depth + 1)
            closing = self.take()
            if closing.kind != "close":
                raise QuerySyntaxError("a parenthesis is not closed", token.position)
            if closing.slop is not None:
                raise QuerySyntaxError('~ may only follow a "phrase"', closing.position)
            return _boosted(tree, closing)
        raise QuerySyntaxError(
            f"a word is missing before {token.text!r}" if token.text else "a word is missing", token.position
        )


def _read_word(field: str | None, token: _Token) -> Node:
    """Return a word, or the beginning of a word. If a boost follows it, return the boosted word."""
    found = _WORD_BOOST.fullmatch(token.text)
    text = found["word"] if found else token.text
    if _FUZZY.fullmatch(text):
        raise QuerySyntaxError(
            f"~ after a word is not supported: {text[:100]!r}. Write "
            f"{text[: text.index('~')][:100]!r}, or its beginning with a *",
            token.position,
        )
    node: Node = Word(field, text)
    begun = words(fold(text)) if text.endswith("*") and not text.endswith("**") else []
    if begun and not begun[-1][0]:
        node = _read_beginning(field, text, token.position)
    return _boosted(node, evolve(token, boost=found["boost"])) if found else node


def _read_beginning(field: str | None, text: str, position: int) -> Node:
    """Return the beginning of a word, such as `begin*`."""
    parts = [word for _, word in words(fold(text))]
    if len(parts) > 1 or len(parts[0]) < _SHORTEST_BEGINNING:
        raise QuerySyntaxError(
            f"* must follow a single word of at least {_SHORTEST_BEGINNING} characters, unlike in "
            f"{text[:100]!r}",
            position,
        )
    return Beginning(parts[0], field)


def _read_slop(phrase: _Token) -> int:
    """Return the maximum number of positions between the words of a phrase."""
    if phrase.slop is None:
        return 0
    if not re.fullmatch("[0-9]{1,9}", phrase.slop) or int(phrase.slop) > MAX_SLOP:
        raise QuerySyntaxError(
            f'~ needs a number of places from 0 to {MAX_SLOP}, as in "two words"~3',
            phrase.position,
        )
    if any(is_unsegmented for is_unsegmented, _ in words(fold(phrase.text))):
        raise QuerySyntaxError(
            "~ counts words, but this phrase is in a script without spaces between words; leave out the ~",
            phrase.position,
        )
    return int(phrase.slop)


def _boosted(node: Node, token: _Token) -> Node:
    """Return the node with the boost that follows it."""
    if token.boost is None:
        return node
    factor = float(token.boost) if re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{0,9})?", token.boost) else 0.0
    if not 0 < factor <= MAX_BOOST:
        raise QuerySyntaxError(
            f"^ needs a number above 0 and at most {MAX_BOOST:g}, as in flour^3",
            token.position,
        )
    if factor * _strongest(node) > MAX_BOOST:
        raise QuerySyntaxError(
            f"the product of nested ^ numbers is more than {MAX_BOOST:g}",
            token.position,
        )
    return node if factor == 1 else Boosted(node, factor)


def _strongest(node: Node) -> float:
    """Return the highest product of nested boosts."""
    if isinstance(node, Boosted):
        return node.factor * _strongest(node.node)
    return (
        max((_strongest(clause) for _, clause in node.clauses), default=1.0)
        if isinstance(node, Boolean)
        else 1.0
    )


def _as_alternative(clause: tuple[Occur, Node]) -> tuple[Occur, Node]:
    """Return a clause as an alternative of `OR`. A negated clause becomes a separate alternative.

    For example, `a OR NOT b` does not exclude notes with `b`.
    """
    occur, node = clause
    return (Occur.SHOULD, Boolean((clause,))) if occur is Occur.MUST_NOT else (occur, node)


def _join(clauses: list[tuple[Occur, Node]]) -> Node:
    if len(clauses) == 1 and clauses[0][0] is not Occur.MUST_NOT:
        return clauses[0][1]
    return Boolean(tuple(clauses))
