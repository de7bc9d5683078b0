"""Words of notes and queries as the full-text index stores them: folded, separated by spaces, and stemmed.

The analyzer of the index stems English. The words of a note in another language are first stemmed in that
language, so that English notes cost and rank as if there were no other language. A word of a query is stemmed
in the same way for each language that it may be in. All stemmers get folded words, so that words match
without their marks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache, partial
from typing import Final

from attrs import frozen
from tantivy import Filter, Searcher, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from lithos.text.pieces import PIECE, cut_at_spaces
from lithos.text.words.analysis import FUNCTION_WORDS, index_text
from lithos.text.words.function_words import BY_LANGUAGE
from lithos.text.words.languages import (
    ENGLISH,
    LANGUAGES,
    NO_FORMS,
    WordForms,
    language_of_query,
    may_have,
    related,
)

#: Maximum number of characters of a word. Longer words are cut in notes and queries alike, because tantivy
#: drops tokens over 65,530 bytes.
LONGEST_WORD: Final = 200
_LONG_WORD: Final = re.compile(f"[^ ]{{{LONGEST_WORD}}}(?=[^ ])")


def make_analyzer() -> TextAnalyzer:
    """Return the analyzer for the output of `prepare_text`.

    The analyzer splits the text at spaces and stems the words as English.
    """
    return TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.stemmer("english")).build()


class _WordsAlone(dict[int, int]):
    """A table for `str.translate` that replaces all characters except letters, numbers and marks with spaces.

    A character that this Python's Unicode version does not know is kept, because it may be a letter.
    Splitting words by a regular expression in tantivy would take longer than the rest of indexing.
    """

    def __missing__(self, code: int) -> int:
        character = chr(code)
        category = unicodedata.category(character)
        result = code if character.isalnum() or category[0] == "M" or category == "Cn" else 32
        if code < _REMEMBERED:
            self[code] = result
        return result


#: Number of code points that are cached, which covers the alphabets. Caching all of Unicode would take 100
#: MB.
_REMEMBERED: Final = 0x3000
_WORDS_ALONE: Final = _WordsAlone()


def prepare_text(text: str) -> str:
    """Return `text` for the tokeniser: folded words of at most 200 characters, separated by spaces.

    Unsegmented scripts are interleaved.
    """
    indexed = index_text(text)
    pieces = (indexed[begin : begin + PIECE] for begin in range(0, len(indexed), PIECE))
    spaced = "".join([piece.translate(_WORDS_ALONE) for piece in pieces])
    return "".join([_cut_words(piece) for piece in cut_at_spaces(spaced)])


def _cut_words(spaced: str) -> str:
    if max(map(len, spaced.split(" "))) <= LONGEST_WORD:
        return spaced
    return _LONG_WORD.sub(r"\g<0> ", spaced)


_LAST_HEH: Final = re.compile("\u0647(?![^ ])")


@cache  # bounded: one entry for each language
def _stemmer(language: str) -> TextAnalyzer:
    return TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.stemmer(language)).build()


def prepare_in(language: str, text: str) -> str:
    """Return `text` for the tokeniser as `prepare_text` does, with words stemmed in a language.

    The analyzer of the index stems English, so English words stay whole.
    """
    prepared = prepare_text(text)
    return prepared if language == ENGLISH else _stem(prepared, language)


def _stem(prepared: str, language: str) -> str:
    stemmer = _stemmer(language)
    if (
        language == "arabic"
    ):  # Folding writes the feminine ending as heh. The stemmer keeps that after an article.
        prepared = _LAST_HEH.sub("\u0629", prepared)
    return " ".join([word for piece in cut_at_spaces(prepared) for word in stemmer.analyze(piece)])


@frozen
class VaultLanguages:
    """The languages of the notes other than English, the most frequent ones first.

    `main` are those in which every word of a query may be stemmed.
    """

    all: tuple[str, ...] = ()
    main: tuple[str, ...] = ()


#: Maximum number of languages in which every word of a query is stemmed, and their minimum share of all
#: notes. A word that no note has in these languages is stemmed in the other languages of the vault.
MOST_LANGUAGES: Final = 4
LEAST_SHARE: Final = 0.01


def count_languages(searcher: Searcher) -> VaultLanguages:
    """Return the languages of the indexed notes."""
    counts = {each: searcher.doc_freq("language", each) for each in LANGUAGES}
    found = sorted((each for each in LANGUAGES if counts[each]), key=lambda each: -counts[each])
    least = LEAST_SHARE * searcher.num_docs
    main = tuple(each for each in found[:MOST_LANGUAGES] if counts[each] >= least)
    return VaultLanguages(tuple(found), main)


@frozen
class QueryLanguages:
    """The languages other than English in which the words of a query are stemmed.

    The `rare` ones are only used for a word that no note has in the other ones. `function_words` are those of
    the language of the query, if that is clear, and of English.
    """

    main: tuple[str, ...] = ()
    rare: tuple[str, ...] = ()
    function_words: frozenset[str] = FUNCTION_WORDS


#: The languages of a query to a vault whose notes are all in English.
ENGLISH_ALONE: Final = QueryLanguages()


@cache  # bounded: one entry for each language
def _function_words(language: str) -> frozenset[str]:
    return FUNCTION_WORDS | BY_LANGUAGE.get(language, frozenset())


@frozen
class QueryStemmer:
    """Stems the words of queries in the languages that the notes and the query have."""

    analyzer: TextAnalyzer
    languages: Callable[[], VaultLanguages]
    #: Return the number of notes that have a token.
    count: Callable[[str], int]

    def languages_of(self, query: str) -> QueryLanguages:
        """Return the languages in which the words of a query are stemmed."""
        vault = self.languages()
        if not vault.all:
            return ENGLISH_ALONE
        clear = language_of_query(query)
        main = vault.main if clear is None else tuple(each for each in vault.all if each in related(clear))
        rare = tuple(each for each in vault.all if each not in main)
        return QueryLanguages(main, rare, _function_words(clear or ENGLISH))

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of an English text as the index stores them."""
        return self.analyzer.analyze(prepare_text(text))

    def tokens_in(self, language: str, text: str) -> list[str]:
        """Return the tokens of a text in a language as the index stores them."""
        return self.analyzer.analyze(prepare_in(language, text))

    def alternatives(self, text: str, languages: QueryLanguages) -> list[list[str]]:
        """Return the tokens of a text in each language, English first, without those that no note has.

        If no note has the tokens of any language, all are returned.
        """
        english = self.tokens(text)
        if languages is ENGLISH_ALONE:
            return [english]
        found = self._distinct(text, [english], languages.main)
        known = [each for each in found if all(map(self.count, each))]
        if known or not languages.rare:
            return known or found
        found = self._distinct(text, found, languages.rare)
        return [each for each in found if all(map(self.count, each))] or found

    def _distinct(self, text: str, found: list[list[str]], languages: tuple[str, ...]) -> list[list[str]]:
        prepared = prepare_text(text)
        more = [
            self.analyzer.analyze(_stem(prepared, each)) for each in languages if may_have(each, prepared)
        ]
        return list({tuple(tokens): tokens for tokens in found + more}.values())

    def best(self, text: str, languages: QueryLanguages) -> list[str]:
        """Return the tokens of a text without spaces in the language in which most notes have them."""
        every = self.alternatives(text, languages)
        return every[0] if len(every) == 1 else max(every, key=lambda each: sum(map(self.count, each)))

    def stems(self, query: str) -> list[str]:
        """Return the distinct stems of a query, each in the language in which most notes have it.

        Function words of other languages than English are left out, unless there is nothing else.
        """
        if not self.languages().all:
            return list(dict.fromkeys(self.tokens(query)))
        languages = self.languages_of(query)
        words = prepare_text(query).split()
        ignored = languages.function_words - FUNCTION_WORDS
        content = [word for word in words if word not in ignored] or words
        return list(dict.fromkeys([token for word in content for token in self.best(word, languages)]))

    def forms(self, query: str) -> WordForms:
        """Return the stems of the words of a query that are not English, and its function words."""
        if not self.languages().all:
            return NO_FORMS
        languages = self.languages_of(query)
        stems: dict[str, str] = {}
        for word in dict.fromkeys(prepare_text(query).split()):
            tokens = self.best(word, languages)
            if tokens == self.tokens(word):
                continue
            for each in filter(partial(may_have, word=word), languages.main + languages.rare):
                stem = _stem(word, each)
                if tokens == self.analyzer.analyze(stem):
                    stems[word] = stem
                    break
        return WordForms(stems, languages.function_words)
