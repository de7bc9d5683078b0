"""Compounds: long words that contain another word, as in German, Dutch and Scandinavian languages.

`Haftpflicht` is part of `Kraftfahrzeughaftpflichtversicherung`. No dictionary is needed: each word of a
question is searched in the long words of the vault. Derived English words (`interaction`) also contain other
words. A match within a longer word therefore counts less than the word itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import define, field

#: Minimum number of letters of a compound, and minimum number of letters of the part that is searched in it.
LEAST_COMPOUND: Final = 10
LONGEST_COMPOUND: Final = 80
LEAST_PART: Final = 5
#: Minimum number of letters before and after the part within a compound, if there are any. An ending after
#: the part may be shorter.
_LEAST_REST: Final = 3
#: Endings that a word may have, or may lack, within a compound.
_ENDINGS: Final = ("en", "er", "es", "e", "n", "s")
#: Maximum numbers of known long words (about 2 MB), of positions to check for a part, and of compounds found.
MOST_KNOWN: Final = 100_000
_MOST_PLACES: Final = 500
MOST_FOUND: Final = 24


def long_words(tokens: Iterable[str]) -> list[str]:
    """Return the tokens that may be compounds, in order and without duplicates."""
    return list(dict.fromkeys(token for token in tokens if _is_long(token)))


def _is_long(token: str) -> bool:
    return LEAST_COMPOUND <= len(token) <= LONGEST_COMPOUND and token.isalpha()


@define(eq=False)
class Compounds:
    """The long words of a vault. One thread adds words, and other threads may read meanwhile."""

    _known: set[str] = field(factory=set, init=False)
    #: All words joined into one text, with a line break before and after each word.
    _text: str = field(default="\n", init=False)

    def add(self, words: Iterable[str]) -> None:
        """Add long words.

        A word remains until the next server start. If no note contains the word any more, it has no effect.
        """
        fresh = [word for word in dict.fromkeys(words) if word not in self._known]
        del fresh[max(0, MOST_KNOWN - len(self._known)) :]
        if fresh:
            self._known.update(fresh)
            self._text += "\n".join(fresh) + "\n"

    def holding(self, word: str) -> list[str]:
        """Return at most 24 long words that contain the whole word.

        If no long word contains the word, its stem is searched instead.
        """
        if len(word) < LEAST_PART or not word.isalpha():
            return []
        found = self._holding(word)
        for ending in _ENDINGS:
            if not found and word.endswith(ending) and len(word) - len(ending) >= LEAST_PART:
                found = self._holding(word.removesuffix(ending))
        return found

    def _holding(self, part: str) -> list[str]:
        text, found = self._text, dict[str, None]()
        place = text.find(part)
        for _ in range(_MOST_PLACES):
            if place < 0 or len(found) == MOST_FOUND:
                break
            begin, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
            front, behind = text[begin:place], text[place + len(part) : end]
            if (front or behind) and _is_part(front) and (_is_part(behind) or behind in _ENDINGS):
                found[text[begin:end]] = None
            place = text.find(part, end)
        return list(found)


def _is_part(rest: str) -> bool:
    return not rest or len(rest) >= _LEAST_REST
