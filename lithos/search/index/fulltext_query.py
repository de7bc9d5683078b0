"""Translation of query trees into tantivy queries, with exactly the same tokens as the index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from attrs import field, frozen
from tantivy import Occur as TantivyOccur
from tantivy import Query, Schema

from lithos.search.index.fulltext_schema import Filters
from lithos.search.index.stemming import ENGLISH_ALONE, QueryLanguages, QueryStemmer
from lithos.text.dates import time_alone
from lithos.text.query import Beginning, Boolean, Boosted, Dated, Node, Occur, Phrase, Word, words_of
from lithos.text.words.analysis import bigrams, fold, words
from lithos.text.words.list_filters import tag_key

#: Shares of the BM25 scores in the title field and in the headings field. They are added to the score of the
#: whole text. Short fields score high: from about 0.4 on, chance matches in titles push answers down
#: (figures: `bench/quality.md`; all values from 0.1 to 0.3 are equally good).
TITLE_BOOST: Final = 0.2
HEADINGS_BOOST: Final = 0.1
#: Factor by which the score of a function word such as `how` or `the` is multiplied. BM25 gives frequent
#: words low scores, but these are still too high in a small vault or a long question. All values from 0.1 to
#: 0.5 are equally good.
FUNCTION_WORD_SHARE: Final = 0.3
#: Factor for the BM25 score of a note's own date, if the date is within the requested time.
DATED_BOOST: Final = 1.5
#: Fields in which a query word without a field is searched, with the weights of the fields.
_EVERYWHERE: Final = (("text", 1.0), ("title", TITLE_BOOST), ("headings", HEADINGS_BOOST))
_OCCUR: Final = {
    Occur.SHOULD: TantivyOccur.Should,
    Occur.MUST: TantivyOccur.Must,
    Occur.MUST_NOT: TantivyOccur.MustNot,
}
#: A clause of a tantivy query.
_Part: TypeAlias = tuple[TantivyOccur, Query]


@frozen
class QueryTranslator:
    """A translator of query trees for one index. It must use the same analyzer as the index."""

    schema: Schema
    stemmer: QueryStemmer
    #: Return the terms that contain a word or one of its tokens, each with its factor for the score.
    holding: Callable[[str, Sequence[str]], Sequence[tuple[str, float]]] = field(
        default=lambda _word, _tokens: (), kw_only=True
    )

    def translate(self, node: Node, filters: Filters) -> Query | None:
        """Return the tantivy query for `node` within `filters`, or `None` if nothing can match."""
        is_english = not self.stemmer.languages().all
        languages = ENGLISH_ALONE if is_english else self.stemmer.languages_of(words_of(node))
        return _Translation(self.schema, self.stemmer, self.holding, languages).translate(node, filters)


@frozen
class _Translation:
    """The translation of one query, whose words are stemmed in English and in `languages`."""

    schema: Schema
    stemmer: QueryStemmer
    holding: Callable[[str, Sequence[str]], Sequence[tuple[str, float]]]
    languages: QueryLanguages

    def translate(self, node: Node, filters: Filters) -> Query | None:
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
        if filters.project is not None:
            found.append(self._any_of([self._exact("project", term) for term in filters.project.terms]))
        return found

    def _tagged(self, tag: str) -> Query:
        """Return a query for the notes that `has_tag` accepts."""
        name = tag_key(tag)
        return self._any_of([self._exact("tag", name), self._beginning("tag", f"{name}/")])

    def _any_of(self, queries: Sequence[Query]) -> Query:
        return Query.boolean_query([(TantivyOccur.Should, each) for each in queries])

    def _beginning(self, field: str, start: str) -> Query:
        # A fuzzy query with distance 0 and `prefix` is an exact prefix query. A regular expression has a
        # limit of 1,000 states.
        return Query.fuzzy_term_query(self.schema, field, start, distance=0, prefix=True)

    def _exact(self, field: str, value: str) -> Query:
        return Query.term_query(self.schema, field, value, index_option="basic")

    def _node(self, node: Node, occur: Occur) -> Query | None:
        if isinstance(node, Boolean):
            return self._boolean(node)
        if isinstance(node, Beginning):
            # Every note with such a word gets the same score. The score doubles if the word is in the title.
            places = ("text", "title") if node.field is None else (node.field,)
            return _join([(TantivyOccur.Should, self._beginning(name, node.text)) for name in places])
        if isinstance(node, Boosted):
            query = self._node(node.node, occur)
            return None if query is None else Query.boost_query(query, node.factor)
        if isinstance(node, Phrase):
            return self._whole(node.field, node.text, node.slop)
        if isinstance(node, Dated):
            return _join(self._of_time(node.keys))
        if occur is not Occur.SHOULD:
            return self._whole(node.field, node.text)
        return _join(self._alternatives(node))

    def _boolean(self, node: Boolean) -> Query | None:
        """Join the clauses that have tokens.

        If all clauses exclude notes, the query matches all other notes.
        """
        parts = [part for occur, clause in node.clauses for part in self._clause(occur, clause)]
        if all(occur is Occur.MUST_NOT for occur, _ in node.clauses) and parts:
            parts.append((TantivyOccur.Must, _unscored(Query.all_query())))
        return (
            Query.boolean_query(parts) if any(occur != TantivyOccur.MustNot for occur, _ in parts) else None
        )

    def _clause(self, occur: Occur, clause: Node) -> list[_Part]:
        """Return the query parts for one clause."""
        if occur is Occur.SHOULD and isinstance(clause, Word):
            return self._alternatives(clause)
        if occur is Occur.SHOULD and isinstance(clause, Boosted) and isinstance(clause.node, Word):
            return self._alternatives(clause.node, clause.factor)
        query = self._node(clause, occur)
        return [] if query is None else [(_OCCUR[occur], query)]

    def _alternatives(self, word: Word, factor: float = 1.0) -> list[_Part]:
        """Return the clauses of a ranked word. A note matches if it contains any part of the word.

        Scripts without spaces are searched by pairs of characters, because single characters match by chance.

        All terms are on one level. Tantivy can search a disjunction of plain terms without reading every note
        that contains one of the terms.
        """
        parts: list[_Part] = []
        for is_unsegmented, part in words(fold(word.text)):
            share = factor * (FUNCTION_WORD_SHARE if part in self.languages.function_words else 1.0)
            if is_unsegmented:
                for pair in bigrams(part):
                    parts += self._anywhere(word.field, [pair], share)
                continue
            tokens = [token for each in self.stemmer.alternatives(part, self.languages) for token in each]
            for token in tokens:
                parts += self._anywhere(word.field, [token], share)
            parts += [
                (TantivyOccur.Should, self._in_field(word.field or "text", [other], worth * share))
                for other, worth in self.holding(part, tokens)
            ]
        return parts

    def _of_time(self, keys: Sequence[str]) -> list[_Part]:
        """Return the clauses for notes whose own date has one of the keys."""
        return [(TantivyOccur.Should, self._in_field("dated", [key], DATED_BOOST)) for key in keys]

    def _whole(self, field: str | None, text: str, slop: int = 0) -> Query | None:
        """Match a text as a phrase in any of its languages.

        A text that is only a time also matches a note's own date.

        `slop` is the maximum number of places between the tokens.
        """
        asked = time_alone(text) if field is None else None
        found = [tokens for tokens in self.stemmer.alternatives(text, self.languages) if tokens]
        parts = [part for tokens in found for part in self._anywhere(field, tokens, 1.0, slop)]
        return _join([*parts, *self._of_time(asked.keys[:1])] if parts and asked is not None else parts)

    def _anywhere(self, field: str | None, tokens: list[str], share: float, slop: int = 0) -> list[_Part]:
        """Match the tokens as a sequence in each possible field. Multiply the score by `share`."""
        places = _EVERYWHERE if field is None else ((field, 1.0),)
        return [
            (TantivyOccur.Should, self._in_field(name, tokens, boost * share, slop)) for name, boost in places
        ]

    def _in_field(self, field: str, tokens: list[str], share: float, slop: int = 0) -> Query:
        if len(tokens) == 1:
            query = Query.term_query(self.schema, field, tokens[0], index_option="freq")
        else:
            query = Query.phrase_query(self.schema, field, list(tokens), slop=slop)
        return query if share == 1.0 else Query.boost_query(query, share)


def _join(parts: list[_Part]) -> Query | None:
    """Return a query that matches any of the parts."""
    if len(parts) < 2:
        return parts[0][1] if parts else None
    return Query.boolean_query(parts)


def _unscored(query: Query) -> Query:
    return Query.const_score_query(query, 0.0)
