"""From the query tree to tantivy queries, with the very tokens the index has."""

from __future__ import annotations

from typing import Final, TypeAlias

from attrs import frozen
from tantivy import Occur as TantivyOccur
from tantivy import Query, Schema, TextAnalyzer

from lithos.core.notes.matching import wished_tags
from lithos.core.text.analysis import FUNCTION_WORDS, bigrams, fold, words
from lithos.core.text.query import Boolean, Node, Occur, Phrase, Word
from lithos.stores.indexes.fulltext_schema import prepare_text

#: Share of its BM25 score among the titles that a match there adds to its score in the whole text, and the
#: same for headings. Such short fields score high: from about 0.4 on, chance matches in titles bury answers
#: (`bench/quality.md` has the figures; anything from 0.1 to 0.3 is as good).
TITLE_BOOST: Final = 0.2
HEADINGS_BOOST: Final = 0.1
#: Share of its score that a word like `how` or `the` keeps. They are frequent, so BM25 gives them little, but
#: in a small vault or a long question still too much; anything from 0.1 to 0.5 is as good.
FUNCTION_WORD_SHARE: Final = 0.3
#: Where a word of a query without a field is looked for.
_EVERYWHERE: Final = (("text", 1.0), ("title", TITLE_BOOST), ("headings", HEADINGS_BOOST))
_OCCUR: Final = {
    Occur.SHOULD: TantivyOccur.Should,
    Occur.MUST: TantivyOccur.Must,
    Occur.MUST_NOT: TantivyOccur.MustNot,
}
#: A clause of a tantivy query.
_Part: TypeAlias = tuple[TantivyOccur, Query]


@frozen
class Filters:
    """What a note must have besides matching: all `tags` and `entities`, the author, the start of the path.

    Values are compared as they are, character by character; a tag is meant with all below it
    (`core.notes.matching.has_tag`). Filters never change a score.
    """

    tags: tuple[str, ...] = ()
    author: str | None = None
    path_prefix: str | None = None
    entities: tuple[str, ...] = ()


@frozen
class QueryTranslator:
    """Translates query trees for one index; the analyzer must be the one its text fields have."""

    schema: Schema
    analyzer: TextAnalyzer

    def translate(self, node: Node, filters: Filters) -> Query | None:
        """Return the query for `node` within `filters`, `None` when it can match nothing."""
        query = self._node(node, Occur.SHOULD)
        restrictions = self._restrictions(filters)
        if query is None or not restrictions:
            return query
        return Query.boolean_query(
            [(TantivyOccur.Must, query), *((TantivyOccur.Must, _unscored(each)) for each in restrictions)]
        )

    def _restrictions(self, filters: Filters) -> list[Query]:
        found = [self._tagged(tag) for tag in filters.tags]
        found += [self._exact("entity", entity) for entity in filters.entities]
        if filters.author is not None:
            found.append(self._exact("author", filters.author))
        if filters.path_prefix:
            found.append(self._beginning("path", filters.path_prefix))
        return found

    def _tagged(self, tag: str) -> Query:
        """Notes that `has_tag` lets pass."""
        either: list[_Part] = []
        for name in wished_tags(tag):
            either.append((TantivyOccur.Should, self._exact("tag", name)))
            either.append((TantivyOccur.Should, self._beginning("tag", f"{name}/")))
        return Query.boolean_query(either)

    def _beginning(self, field: str, start: str) -> Query:
        # No distance and `prefix`: an exact prefix; a regular expression has a limit of 1,000 states.
        return Query.fuzzy_term_query(self.schema, field, start, distance=0, prefix=True)

    def _exact(self, field: str, value: str) -> Query:
        return Query.term_query(self.schema, field, value, index_option="basic")

    def _node(self, node: Node, occur: Occur) -> Query | None:
        if isinstance(node, Boolean):
            return self._boolean(node)
        if isinstance(node, Phrase) or occur is not Occur.SHOULD:
            return self._sequence(node.field, self.tokens(node.text))
        return _join(self._alternatives(node))

    def _boolean(self, node: Boolean) -> Query | None:
        """Join the clauses that have tokens; excluded ones alone mean everything else."""
        parts = [part for occur, clause in node.clauses for part in self._clause(occur, clause)]
        if all(occur is Occur.MUST_NOT for occur, _ in node.clauses) and parts:
            parts.append((TantivyOccur.Must, _unscored(Query.all_query())))
        return (
            Query.boolean_query(parts) if any(occur != TantivyOccur.MustNot for occur, _ in parts) else None
        )

    def _clause(self, occur: Occur, clause: Node) -> list[_Part]:
        """The parts of a query that stand for one clause."""
        if occur is Occur.SHOULD and isinstance(clause, Word):
            return self._alternatives(clause)
        query = self._node(clause, occur)
        return [] if query is None else [(_OCCUR[occur], query)]

    def _alternatives(self, word: Word) -> list[_Part]:
        """A ranked word: any of its parts; of unsegmented script pairs, since single characters are noise.

        One term beside the other: a disjunction of nothing but terms is what tantivy can search without
        looking at every note that has one of them.
        """
        parts: list[_Part] = []
        for is_unsegmented, part in words(fold(word.text)):
            share = FUNCTION_WORD_SHARE if part in FUNCTION_WORDS else 1.0
            for token in bigrams(part) if is_unsegmented else self.tokens(part):
                parts += self._anywhere(word.field, [token], share)
        return parts

    def tokens(self, text: str) -> list[str]:
        """Return the tokens the index has of a text."""
        return self.analyzer.analyze(prepare_text(text))

    def _sequence(self, field: str | None, tokens: list[str]) -> Query | None:
        """Match the tokens side by side, in `field` or in any text field."""
        return _join(self._anywhere(field, tokens, 1.0)) if tokens else None

    def _anywhere(self, field: str | None, tokens: list[str], share: float) -> list[_Part]:
        """The tokens side by side in each field they may be in, for a share of their score."""
        places = _EVERYWHERE if field is None else ((field, 1.0),)
        return [
            (TantivyOccur.Should, _weigh(self._in_field(name, tokens), boost * share))
            for name, boost in places
        ]

    def _in_field(self, field: str, tokens: list[str]) -> Query:
        if len(tokens) == 1:
            return Query.term_query(self.schema, field, tokens[0], index_option="freq")
        return Query.phrase_query(self.schema, field, list(tokens))


def _weigh(query: Query, share: float) -> Query:
    return query if share == 1.0 else Query.boost_query(query, share)


def _join(parts: list[_Part]) -> Query | None:
    """Any of the parts."""
    if len(parts) < 2:
        return parts[0][1] if parts else None
    return Query.boolean_query(parts)


def _unscored(query: Query) -> Query:
    return Query.const_score_query(query, 0.0)
