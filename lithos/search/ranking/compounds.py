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
#: Minimum number of letters of a part that a note has as a word of its own, in a language with compounds.
LEAST_SHORT_PART: Final = 4
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
class _LongWords:
    """Long words, joined into one text for searching."""

    _known: set[str] = field(factory=set, init=False)
    #: All words joined into one text, with a line break before and after each word.
    _text: str = field(default="\n", init=False)

    def add(self, words: Iterable[str]) -> None:
        fresh = [word for word in dict.fromkeys(words) if word not in self._known]
        del fresh[max(0, MOST_KNOWN - len(self._known)) :]
        if fresh:
            self._known.update(fresh)
            self._text += "\n".join(fresh) + "\n"

    def holding(self, part: str, *, at_edge: bool = False) -> list[str]:
        """Return at most 24 words that contain a part. With `at_edge`, they begin or end with it."""
        text, found = self._text, dict[str, None]()
        place = text.find(part)
        for _ in range(_MOST_PLACES):
            if place < 0 or len(found) == MOST_FOUND:
                break
            begin, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
            front, behind = text[begin:place], text[place + len(part) : end]
            is_inner = front and behind and behind not in _ENDINGS
            if (
                (front or behind)
                and _is_part(front)
                and (_is_part(behind) or behind in _ENDINGS)
                and not (at_edge and is_inner)
            ):
                found[text[begin:end]] = None
            place = text.find(part, end)
        return list(found)


@define(eq=False)
class Compounds:
    """The long words of a vault. One thread adds words, and other threads may read meanwhile."""

    _all: _LongWords = field(factory=_LongWords, init=False)
    #: The long words of notes in languages that write compounds as one word.
    _joined: _LongWords = field(factory=_LongWords, init=False)

    def add(self, words: Iterable[str], *, has_parts: bool = False) -> None:
        """Add long words. With `has_parts`, short words are searched in them too.

        A word remains until the next server start. If no note contains the word any more, it has no effect.
        """
        words = list(words)
        self._all.add(words)
        if has_parts:
            self._joined.add(words)

    def holding(self, *forms: str, is_word: bool = False) -> list[str]:
        """Return at most 24 long words that contain one of the forms of a word.

        If no long word contains a form, it is searched without its ending. A form of four letters is searched
        only in notes in languages with compounds, and only if `is_word`: a note has it as a word of its own.
        """
        found: dict[str, None] = {}
        for form in dict.fromkeys(forms):
            found |= dict.fromkeys(self._holding(form, is_word=is_word))
        return list(found)[:MOST_FOUND]

    def _holding(self, part: str, *, is_word: bool) -> list[str]:
        if len(part) < LEAST_SHORT_PART or not part.isalpha():
            return []
        if len(part) < LEAST_PART:
            return self._joined.holding(part, at_edge=True) if is_word else []
        found = self._all.holding(part)
        for ending in _ENDINGS:
            if not found and part.endswith(ending) and len(part) - len(ending) >= LEAST_PART:
                found = self._all.holding(part.removesuffix(ending))
        return found


def _is_part(rest: str) -> bool:
    return not rest or len(rest) >= _LEAST_REST
