"""Snippets (the passage around the first match of a query) and truncation (notes spec, section 10).

A text is cut at the most readable place.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Sequence
from typing import Final, Self, TypeAlias

from attrs import frozen

from lithos.core.errors import InvalidInput
from lithos.core.text.analysis import WORD_PART, fold, runs, unfold_offset

AROUND: Final = 150
WITHOUT_MATCH: Final = 300
#: Beyond this a word is recognised by its beginning, which bounds the work per word of the text.
LONGEST_WORD: Final = 64
#: So many words are found faster one by one than by going through the text.
FEW_WORDS: Final = 16
_ELLIPSIS: Final = "..."

#: Endings the full-text index stems away: a hit for `indexes` may only have `index` or `indexing` in it.
_ENDING: Final = re.compile(r"(?<=[a-z]{3})(?:ations?|ings?|ies|ied|es|ed|ely|ly|s|e|y)$")
_DOUBLED: Final = re.compile(r"([bdgmnprt])\1$")

Span: TypeAlias = tuple[int, int]


@frozen
class Terms:
    """The folded terms of a query, prepared once for any number of notes."""

    words: tuple[str, ...]
    unsegmented: tuple[str, ...]
    #: Without their English endings.
    stems: tuple[str, ...]

    @classmethod
    def of(cls, terms: Sequence[str]) -> Self:
        """From the terms that `core.text.query.query_terms` returns."""
        # What does not begin with a letter or a number is no beginning of a word.
        words = [term for term in terms if WORD_PART.match(term)]
        return cls(
            tuple({term[:LONGEST_WORD]: None for term in words}),
            tuple(term for term in terms if _is_unsegmented(term)),
            tuple({_stem(term)[:LONGEST_WORD]: None for term in words}),
        )


def make_snippet(title: str, content: str, terms: Terms) -> str:
    """Return the earliest match of any of the terms with 150 characters on either side.

    A term matches where a word begins with it, a term of unsegmented script anywhere. When none does,
    the terms count without their English endings; when still none does, the text's beginning is shown.
    """
    text = f"# {title}\n\n{content}"
    folded = fold(text)
    match = _find_first(folded, terms.words, terms.unsegmented) or _find_first(folded, terms.stems, ())
    if match is None:
        return text[:WITHOUT_MATCH] + _ELLIPSIS * (len(text) > WITHOUT_MATCH)
    start = max(0, unfold_offset(text, match[0]) - AROUND)
    end = unfold_offset(text, match[1]) + AROUND
    return _ELLIPSIS * (start > 0) + text[start:end] + _ELLIPSIS * (end < len(text))


def _find_first(folded: str, words: Sequence[str], unsegmented: Sequence[str]) -> Span | None:
    """Return the earliest match, the longest of those at one place."""
    first, longest = find_word(folded, words) or (len(folded), 0)
    for term in unsegmented:
        # A later match can only win by being longer at the same place, so the search ends there.
        start = folded.find(term, 0, first + len(term))
        if start >= 0 and (start < first or len(term) > longest):
            first, longest = start, len(term)
    return (first, first + longest) if longest else None


def find_word(folded: str, words: Sequence[str], few: int = FEW_WORDS) -> tuple[int, int] | None:
    """Return where the earliest word begins with one of `words`, and the length of the longest that does.

    Up to `few` words are looked for one by one, more of them by going through the words of the text.
    """
    if len(words) > few:
        return _scan_words(folded, frozenset(words))
    first, longest = len(folded), 0
    for word in words:
        start = _find_beginning(folded, word, first + len(word))
        if start >= 0 and (start < first or len(word) > longest):
            first, longest = start, len(word)
    return (first, longest) if longest else None


def _find_beginning(folded: str, word: str, end: int) -> int:
    """Return where a word of the text before `end` begins with `word`, -1 when none does."""
    start = folded.find(word, 0, end)
    while start > 0 and WORD_PART.match(folded, start - 1, start):
        start = folded.find(word, start + 1, end)
    return start


def _scan_words(folded: str, words: Collection[str]) -> tuple[int, int] | None:
    lengths: dict[str, list[int]] = {}
    for word in sorted(words, key=len, reverse=True):
        lengths.setdefault(word[0], []).append(len(word))
    for part in WORD_PART.finditer(folded):
        start, end = part.span()
        # A term has no separator in it, so it is no longer than the word, unless a mark continues the word.
        longest = end - start if folded[end : end + 1].isascii() else LONGEST_WORD
        for length in lengths.get(folded[start], ()):
            if length <= longest and folded[start : start + length] in words:
                return start, length
    return None


def _is_unsegmented(term: str) -> bool:
    return next(runs(term), (False, ""))[0]


def _stem(term: str) -> str:
    """Cut an English ending and the consonant it doubles, roughly: `running` -> `run`."""
    stem = _ENDING.sub("", term)
    return _DOUBLED.sub(r"\1", stem) if stem != term else term


_BLANK_LINE: Final = re.compile(r"\n[^\S\n]*(?=\n)")
_SENTENCE_END: Final = re.compile(r"[.!?](?=\s)|[。！？]")
_SPACE: Final = re.compile(r"\s")


def truncate(content: str, max_length: int | None) -> tuple[str, bool]:
    """Return `content` in at most `max_length` characters and whether it was cut.

    `None` and 0 mean no limit; a negative limit is refused.
    """
    if max_length is not None and max_length < 0:
        raise InvalidInput(f"max_length must be 0 (no limit) or more, not {max_length}")
    if not max_length or len(content) <= max_length:
        return content, False
    if max_length <= len(_ELLIPSIS):
        return content[:max_length], True
    budget = max_length - len(_ELLIPSIS)
    blank = _last(_BLANK_LINE, content, budget // 2 + 1, budget)
    if blank:
        return content[: blank.start()].rstrip(), True
    sentence = _last(_SENTENCE_END, content, budget // 2, budget)
    if sentence:
        return content[: sentence.end()], True
    space = _last(_SPACE, content, 0, budget)
    return content[: space.start() if space else budget].rstrip() + _ELLIPSIS, True


def _last(pattern: re.Pattern[str], content: str, start: int, budget: int) -> re.Match[str] | None:
    """Return the last match in `content[start:budget]`, which may look at the character after it."""
    matches = pattern.finditer(content, start, budget + 1)
    last = deque((match for match in matches if match.end() <= budget), maxlen=1)
    return last[0] if last else None
