"""The words of a prompt that show its subject, and how many of them a note has, in any language.

Function words and words of any task do not show it. The language of a part is that of most of its function
words, so that a word of one language never hides a word of another. Scripts without spaces have no words in
the index, only pairs of characters. A long enough row of pairs without a function word counts as a word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import groupby
from typing import Final

from attrs import frozen

from lithos.text.words.analysis import FUNCTION_WORDS, bigrams, fold, runs, words
from lithos.text.words.common_words import COMMON_WORDS, FUNCTION_WORDS_OF
from lithos.text.words.languages import ENGLISH

#: Minimum number of the part's subject words that a note has. One rare word shows a name, not a subject.
LEAST_SHARED: Final = 2
#: The minimum in languages whose words are written as separate syllables.
LEAST_SYLLABLES: Final[Mapping[str, int]] = {"vi": 3}
#: Number of characters of a word in scripts without spaces: Thai, Lao, Myanmar and Khmer, and all others.
_LONG, _SHORT = 5, 2
_LONG_SCRIPTS: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9fe\uaa60-\uaa7f]")
#: Languages whose function words are cut out of texts without spaces.
_UNSPACED: Final = ("th", "zh")
_ENGLISH: Final = "en"
#: The languages here that have a stemmer, by its name.
_STEMMED_AS: Final[Mapping[str, str]] = {
    "ar": "arabic", "de": "german", "el": "greek", "es": "spanish", "fr": "french", "it": "italian",
    "nl": "dutch", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "tr": "turkish",
}  # fmt: skip
_CUT: Final = re.compile(
    "|".join(
        sorted(
            {re.escape(word) for language in _UNSPACED for word in FUNCTION_WORDS_OF[language].split()},
            key=lambda word: (-len(word), word),
        )
    )
)
_SPACED: Final[Mapping[str, frozenset[str]]] = {
    _ENGLISH: FUNCTION_WORDS.union(COMMON_WORDS.split()),
    **{
        language: frozenset(text.split())
        for language, text in FUNCTION_WORDS_OF.items()
        if language not in _UNSPACED
    },
}


@frozen
class SubjectWords:
    """The subject words of a part: its stems, and the pairs of each row of characters without spaces."""

    stems: frozenset[str]
    rows: tuple[tuple[str, ...], ...] = ()
    least: int = LEAST_SHARED

    def all_stems(self) -> list[str]:
        """Return the stems and pairs, which a note may have."""
        return list(dict.fromkeys([*sorted(self.stems), *(pair for row in self.rows for pair in row)]))

    def are_enough(self, held: Collection[str]) -> bool:
        """Return whether a note with these of the stems and pairs has enough words of the part."""
        return len(self.stems.intersection(held)) + sum(_in_row(row, held) for row in self.rows) >= self.least


def _in_row(row: tuple[str, ...], held: Collection[str]) -> int:
    """Return the number of words in the consecutive pairs of a row that a note has."""
    size = _LONG if _LONG_SCRIPTS.match(row[0]) else _SHORT
    stretches = groupby(row, lambda pair: pair in held)
    return sum((1 + sum(1 for _ in pairs)) // size for is_held, pairs in stretches if is_held)


class PromptWords:
    """Finds the subject words of parts. `terms` returns the stems of a text of a language in the index."""

    def __init__(self, terms: Callable[[str, str], Collection[str]]) -> None:
        self._common = frozenset(terms(ENGLISH, COMMON_WORDS))
        self._stems = {
            language: frozenset(terms(_STEMMED_AS.get(language, ENGLISH), FUNCTION_WORDS_OF[language]))
            for language in _SPACED.keys() - {_ENGLISH}
        }

    def of(self, part: str, stems: Collection[str]) -> SubjectWords:
        """Return the subject words of a part with these content stems."""
        folded = fold(part)
        unspaced = [run for is_unspaced, run in runs(folded) if is_unspaced]
        pairs = {pair for run in unspaced for pair in bigrams(run)}
        language = language_of(folded)
        subject = {stem for stem in stems if len(stem) > 1} - self._common - pairs
        return SubjectWords(
            frozenset(subject - self._stems.get(language, frozenset())),
            tuple(row for run in unspaced for row in _rows(run)),
            LEAST_SYLLABLES.get(language, LEAST_SHARED),
        )


def _rows(run: str) -> Iterator[tuple[str, ...]]:
    for piece in _CUT.sub(" ", run).split():
        if len(piece) > 1:
            yield tuple(bigrams(piece))


def language_of(folded: str) -> str:
    """Return the language of most function words of a folded text.

    English comes first and is the default. For English, words of any task count too. Without them, short
    English parts with a name such as `Des` would be parts in another language.
    """
    found: Counter[str] = Counter()
    for is_unspaced, word in words(folded):
        if not is_unspaced:
            found.update(language for language, known in _SPACED.items() if word in known)
    most = max(found.values(), default=0)
    return _ENGLISH if found[_ENGLISH] == most else max(each for each in found if found[each] == most)
