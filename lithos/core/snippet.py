"""The piece of a note around the first match of a query (notes spec, section 10)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

from lithos.core.text import WORD_PART, fold, runs, unfold_offset

AROUND: Final = 150
WITHOUT_MATCH: Final = 300
#: Beyond this a word is recognised by its beginning, which bounds the work per word of the text.
LONGEST_WORD: Final = 64
_ELLIPSIS: Final = "..."

#: Endings the full-text index stems away: a hit for `indexes` may only have `index` or `indexing` in it.
_ENDING: Final = re.compile(r"(?<=[a-z]{3})(?:ations?|ings?|ies|ied|es|ed|ely|ly|s|e|y)$")
_DOUBLED: Final = re.compile(r"([bdgmnprt])\1$")

Span: TypeAlias = tuple[int, int]


def make_snippet(title: str, content: str, terms: Sequence[str]) -> str:
    """Return the earliest match of any of the folded `terms` with 150 characters on either side.

    A term matches where a word begins with it, a term of unsegmented script anywhere. When none does,
    the terms count without their English endings; when still none does, the text's beginning is shown.
    """
    text = f"# {title}\n\n{content}"
    folded = fold(text)
    match = _find_first(folded, terms) or _find_first(folded, [_stem(term) for term in terms])
    if match is None:
        return text[:WITHOUT_MATCH] + _ELLIPSIS * (len(text) > WITHOUT_MATCH)
    start = max(0, unfold_offset(text, match[0]) - AROUND)
    end = unfold_offset(text, match[1]) + AROUND
    return _ELLIPSIS * (start > 0) + text[start:end] + _ELLIPSIS * (end < len(text))


def _find_first(folded: str, terms: Sequence[str]) -> Span | None:
    """Return the earliest match, the longest of those at one place."""
    words = {term[:LONGEST_WORD] for term in terms if term and not _is_unsegmented(term)}
    match = _find_word(folded, words)
    for term in terms:
        if _is_unsegmented(term):
            # A later match can only win by being longer at the same place, so the search ends there.
            start = folded.find(term, 0, match[0] + len(term) if match else len(folded))
            if start >= 0 and (match is None or (start, -len(term)) < (match[0], match[0] - match[1])):
                match = start, start + len(term)
    return match


def _find_word(folded: str, words: Collection[str]) -> Span | None:
    lengths: dict[str, list[int]] = {}
    for word in sorted(words, key=len, reverse=True):
        lengths.setdefault(word[0], []).append(len(word))
    for part in WORD_PART.finditer(folded) if words else ():
        start, end = part.span()
        # A term has no separator in it, so it is no longer than the word, unless a mark continues the word.
        longest = end - start if folded[end : end + 1].isascii() else LONGEST_WORD
        for length in lengths.get(folded[start], ()):
            if length <= longest and folded[start : start + length] in words:
                return start, start + length
    return None


def _is_unsegmented(term: str) -> bool:
    return next(runs(term), (False, ""))[0]


def _stem(term: str) -> str:
    """Cut an English ending and the consonant it doubles, roughly: `running` -> `run`."""
    stem = _ENDING.sub("", term)
    return _DOUBLED.sub(r"\1", stem) if stem != term else term
