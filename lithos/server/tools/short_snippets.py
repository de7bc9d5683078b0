"""Short snippets for small answers (docs/spec/notes.md §10).

Short snippets consist of the sentences that match best.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lithos.kernel.values.graphemes import whole
from lithos.text.sentences import AFTER_END, CLAUSES, asks, is_clause_end, is_end, last_match
from lithos.text.snippet import Terms, first_places
from lithos.text.words.analysis import fold

#: Weights of the first three rows for the division of the space. All other rows have weight 1. The first rows
#: most often contain the answer. A test with 60 questions each compared this division with a double weight
#: for the first three rows, in the same number of characters. Ten rows contained the answer for 40 instead of
#: 27 % (documentation) and for 42 instead of 33 % (dialogues).
_FIRST: Final = (4, 3, 2)
#: Minimum number of characters in a snippet.
LEAST: Final = 60
#: Boundaries between sentences and between lines. There is no boundary after `i.e.` or an item number.
_BETWEEN_ASCII: Final = re.compile(r"(?<=\w\w[.!?])[^\S\n]+|\n+")
_BETWEEN: Final = re.compile(rf"(?<=\w\w[.!?])[^\S\n]+|\n+|{AFTER_END}[^\S\n]*")
#: Last characters of a sentence that is usually answered by the next sentence. `asks` knows other scripts.
_OPEN: Final = ("?", ":")
_ELLIPSIS: Final = "..."
_MARKS: Final = ".!?"
#: Ends of a clause in scripts without spaces.
_CLAUSE: Final = re.compile(f"[{CLAUSES}]")
#: Divisor of the space before the first match. At most a third of a cut sentence precedes its first match.
_BEFORE: Final = 3


def rooms(count: int, room: int) -> list[int]:
    """Divide `room` characters between `count` snippets and return the size of each snippet."""
    shares = [*_FIRST, *[1] * count][:count]
    return [max(LEAST, room * share // sum(shares)) for share in shares]


def shorten(text: str, terms: Terms, most: int) -> str:
    """Return adjacent sentences and lines that match best, in at most `most` characters of JSON.

    The value of a selection is halved if it ends with a question mark or a colon, so that the next sentence
    is included. Long sentences are cut between words.
    """
    if escaped_length(text) <= most:
        return text
    is_ascii, units, room = text.isascii(), _units(text), most - 2 * len(_ELLIPSIS)
    sizes = [escaped_length(text[start:end]) for start, end in units]
    weights = [_matched(text[start:end], terms) for start, end in units]
    best, shown = -1.0, units[0]
    for first, (start, _) in enumerate(units):
        found, size = dict[int, float](), 0
        for last in range(first, len(units)):
            size += sizes[last] + 2 * (last > first)
            if last > first and size > room:
                break
            found |= weights[last]
            end = units[last][1]
            is_open = last + 1 < len(units) and (
                text.endswith(_OPEN, start, end) if is_ascii else asks(text[max(start, end - 4) : end])
            )
            worth = sum(found.values()) * (0.5 if is_open else 1.0)
            if worth > best or (worth == best and start == shown[0]):
                best, shown = worth, (start, end)
    return _cut(text, *shown, terms, most)


def escaped_length(text: str) -> int:
    """Return the length of a text in JSON, without its quotes."""
    return len(text) + text.count("\n") + text.count('"') + text.count("\\")


def _units(text: str) -> Sequence[tuple[int, int]]:
    """Return the beginning and the end of each sentence or line."""
    between = _BETWEEN_ASCII if text.isascii() else _BETWEEN
    edges = [0, *(edge for found in between.finditer(text) for edge in found.span()), len(text)]
    units = [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]
    return units or [(0, len(text))]


def _matched(text: str, terms: Terms) -> dict[int, float]:
    """Return the weights of the terms that occur in a text, by the number of the term."""
    return {number: terms.terms[number].weight for number in first_places(fold(text), terms)}


def _cut(text: str, start: int, end: int, terms: Terms, most: int) -> str:
    """Return `text[start:end]`, cut to `most` characters around its first match. Dots mark the cuts."""
    room = max(1, most - 2 * len(_ELLIPSIS))
    if escaped_length(text[start:end]) > room:
        folded = fold(text[start:end])
        places = first_places(folded, terms).values() if len(folded) == end - start else ()
        match = start + min(places, default=0)
        if match - start > room // _BEFORE:
            space = text.find(" ", match - room // _BEFORE, match)
            start = space + 1 if space >= 0 else whole(text, match, start)
        end = min(end, start + room)
        end -= max(0, escaped_length(text[start:end]) - room)
        end = _word_end(text, start + room // 2, end, start)
    shown = text[start:end].strip()
    before = _ELLIPSIS * (start > 0 and not shown.startswith(_ELLIPSIS))
    is_cut = end < len(text) and shown[-1:] not in _MARKS and not _ends(text, shown, end)
    return before + shown + _ELLIPSIS * is_cut


def _word_end(text: str, least: int, end: int, start: int) -> int:
    """Return the last space or end of a clause from `least` on, or else the last end of a grapheme."""
    space = text.rfind(" ", least, end)
    clause = None if text.isascii() else last_match(_CLAUSE, text, max(least, space), end)
    return whole(text, clause.end() if clause else space if space >= 0 else end, start)


def _ends(text: str, shown: str, end: int) -> bool:
    return not text.isascii() and (is_end(shown, len(shown)) or is_clause_end(text, end))
