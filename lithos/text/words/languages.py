"""The language of a text, for the choice of a stemmer (docs/spec/search.md §1).

The script decides first. Within a script, the function words and the letters of the text decide. A text
without a clear language (code, names, a single word) counts as English, and so does a text in a
language without a stemmer, such as Polish.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

from lithos.text.words.analysis import FUNCTION_WORDS, fold, normalise
from lithos.text.words.function_words import LANGUAGES_OF, MARKED, STEMMED, WEIGHTS, WHOLE

ENGLISH: Final = "english"
#: Languages that have a stemmer, in alphabetical order.
LANGUAGES: Final = tuple(sorted(STEMMED))
#: Number of characters at the beginning of a text that show its language.
SAMPLE: Final = 600
#: Languages whose compounds are written as one word.
COMPOUNDING: Final = frozenset({"danish", "dutch", "finnish", "german", "hungarian", "norwegian", "swedish"})


@frozen
class _Least:
    """The least weight of the function words and letters of a language, and how many must differ."""

    weight: int
    distinct: int


_OF_NOTE: Final = _Least(2 * WHOLE, 3)
_OF_QUERY: Final = _Least(3 * WHOLE // 2, 2)
#: Minimum ratio of the weight to the number of all words, and to the weight of any other language.
_LEAST_SHARE: Final = 0.1 * WHOLE
_LEAST_LEAD: Final = 1.25
#: Maximum numbers of times that a word or a letter counts.
_MOST_TIMES: Final = 6
_MOST_LETTERS: Final = 3
#: Minimum number of function words of a language and of letters that no other language has.
_LEAST_OWN: Final = 2
#: Two languages whose word forms are alike.
_NEAR: Final = frozenset({"danish", "norwegian"})
#: Minimum number of words of a note.
_LEAST_WORDS: Final = 4
_WORDS: Final = re.compile(r"[^\W\d_]+")
#: Tamil vowel characters are marks, so the general pattern would split words.
_TAMIL_WORDS: Final = re.compile("[\u0b80-\u0bff]+")
_LATIN: Final = "latin"
#: Table for `bytes.translate` that leaves only ASCII letters, with spaces between the words.
_LETTERS_ALONE: Final = bytes(code if chr(code).isalpha() and code < 128 else 32 for code in range(256))
_SCRIPTS: Final = {
    _LATIN: re.compile("[a-z]"),
    "greek": re.compile("[\u0370-\u03ff]"),
    "cyrillic": re.compile("[\u0400-\u052f]"),
    "arabic": re.compile("[\u0620-\u06ff]"),
    "tamil": re.compile("[\u0b80-\u0bff]"),
}
#: The only language with a stemmer of a script. All other scripts here are used by several languages.
_OF_SCRIPT: Final = {"greek": "greek", "tamil": "tamil"}
_SCRIPT_OF: Final = {
    "greek": "greek", "russian": "cyrillic", "arabic": "arabic", "tamil": "tamil",
}  # fmt: skip
_LETTER: Final = re.compile(r"[^\W\d_]")


@frozen
class WordForms:
    """The stems of the words of a query that are not in English, by folded word, and all function words."""

    stems: Mapping[str, str] = field(factory=dict)
    function_words: frozenset[str] = FUNCTION_WORDS


#: The forms of an English query.
NO_FORMS: Final = WordForms()


def language_of(text: str) -> str:
    """Return the language of a note's text, or `english` if no other language with a stemmer is clear.

    Only the first 600 characters are read.
    """
    sample = _sample(text)
    folded = fold(sample)
    script = _script_of(folded)
    found = _words_of(folded, script)
    if script is None or len(found) < _LEAST_WORDS:
        return ENGLISH
    language = _OF_SCRIPT.get(script) or _clear(sample, found, _OF_NOTE)
    return language if language in STEMMED else ENGLISH


def is_other_language(text: str) -> bool:
    """Return whether a text is certainly not in English, by its script or its function words."""
    sample = _sample(text)
    folded = fold(sample)
    script = _script_of(folded)
    if script is None:
        # Half of the letters are enough. The rest is often Latin: names and code.
        letters = _LETTER.findall(folded)
        return 2 * sum(not letter.isascii() for letter in letters) > len(letters)
    found = _words_of(folded, script)
    return script != _LATIN or (
        len(found) >= _LEAST_WORDS and _clear(sample, found, _OF_NOTE) not in (None, ENGLISH)
    )


def language_of_query(text: str) -> str | None:
    """Return the language of a query, or None if its words and letters do not make it clear.

    The language may be one without a stemmer.
    """
    sample = _sample(text)
    folded = fold(sample)
    return _clear(sample, _words_of(folded, _script_of(folded)), _OF_QUERY)


def may_have(language: str, word: str) -> bool:
    """Return whether a folded word is in the script of a language."""
    return _SCRIPTS[_SCRIPT_OF.get(language, _LATIN)].search(word) is not None


def _sample(text: str) -> str:
    """Return the beginning of a text, in ASCII if all its letters are ASCII.

    Folding a text with quotes, dashes or emoji would take longer than the rest.
    """
    sample = text[:SAMPLE]
    if sample.isascii() or any(_is_lettering(each) for each in set(sample)):
        return sample
    return sample.encode("ascii", "replace").decode("ascii")


def _is_lettering(character: str) -> bool:
    return not character.isascii() and (character.isalpha() or unicodedata.combining(character) != 0)


def _script_of(folded: str) -> str | None:
    """Return the script of more than half of the letters, or None."""
    if folded.isascii() or 4 * len(folded.encode("ascii", "ignore")) > 3 * len(folded):
        return _LATIN
    letters = len(_LETTER.findall(folded))
    for script, pattern in _SCRIPTS.items():
        if 2 * len(pattern.findall(folded)) > letters:
            return script
    return None


def _words_of(folded: str, script: str | None) -> list[str]:
    """Return the words of a folded text. Folded Latin letters are ASCII, for which this is faster."""
    if script == _LATIN:
        return folded.encode("ascii", "replace").translate(_LETTERS_ALONE).decode("ascii").split()
    return (_TAMIL_WORDS if script == "tamil" else _WORDS).findall(folded)


def related(language: str) -> frozenset[str]:
    """Return a language and the language that is too similar to be distinguished for sure."""
    return _NEAR if language in _NEAR else frozenset((language,))


def _clear(sample: str, found: list[str], least: _Least) -> str | None:
    """Return the language with the most function words and letters, or None if none is clearly first."""
    counts = Counter(found)
    words = counts.keys() & WEIGHTS.keys()
    times = {word: min(counts[word], _MOST_TIMES) for word in words}
    total = len(found) - sum(counts[word] for word in words) + sum(times.values())
    if not sample.isascii():
        letters = Counter(MARKED.findall(normalise("NFC", sample).lower()))
        times |= {letter: min(count, _MOST_LETTERS) for letter, count in letters.items()}
    if not times:
        return None
    weights = _weigh(times)
    first = max(weights, key=lambda each: (weights[each], each))
    weight, kin = weights[first], related(first)
    second = max((weights[each] for each in weights if each not in kin), default=0)
    if weight < max(least.weight, _LEAST_SHARE * total, _LEAST_LEAD * second):
        return None
    telling = [
        each for each in times if first in LANGUAGES_OF[each] and (len(each) > 1 or not each.isascii())
    ]
    # Names may have some letters of a language. A word, or a letter of no other language, must be there too.
    own = sum(times[each] for each in telling if each in words or len(WEIGHTS[each]) == 1)
    return first if len(telling) >= least.distinct and own >= _LEAST_OWN else None


def _weigh(times: Mapping[str, int]) -> dict[str, int]:
    """Return the weight of each language."""
    weights: dict[str, int] = {}
    for each, count in times.items():
        for language, weight in WEIGHTS[each]:
            weights[language] = weights.get(language, 0) + weight * count
    return weights
