"""Snippets (passages that answer a query) and truncation (docs/spec/notes.md §10 and docs/spec/vault.md §4).

Cuts are made at the positions where a text stays easiest to read.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from heapq import nlargest
from itertools import pairwise, takewhile
from typing import Final, NamedTuple, Self, TypeAlias

from attrs import frozen

from lithos.kernel.values.errors import InvalidInput
from lithos.kernel.values.graphemes import beginning, whole
from lithos.text.markdown import strip_passage, visible_text
from lithos.text.pieces import pieces_of_lines
from lithos.text.sentences import CLAUSES, PLAIN_END
from lithos.text.snippet_bounds import (
    ELLIPSIS,
    WINDOW,
    cut_at_word,
    cut_window,
    edges_at,
    ending,
    shown_part,
    tidy,
)
from lithos.text.words.analysis import bigrams, fold, unfold_offset, unfold_offsets, words
from lithos.text.words.languages import NO_FORMS, WordForms

#: Maximum length in characters of a chunk that is shown in full.
LONGEST_CHUNK: Final = 1_000
#: Maximum number of terms to search for. The terms with the highest weights are used.
MOST_TERMS: Final = 48
#: Maximum number of matches of one term per piece of text.
_MOST_PLACES: Final = 128
#: Maximum length of a word in characters. Longer words are matched by their beginning.
LONGEST_WORD: Final = 64
#: Factors for a term's weight: for another form of the word, and for each further match in the window.
_OTHER_FORM: Final = 0.9
_REPEATED: Final = 0.02
#: Maximum number of letters that may follow a stem of at most 2 letters, of 3 letters, and of more letters.
_SUFFIXES: Final = (1, 4, 6)
#: Minimum number of letters that a word must share with its stem in another language.
_LEAST_COMMON: Final = 3
#: Minimum length in characters of a paragraph that counts as prose.
_LEAST_PROSE: Final = 40
_BLANK_LINE: Final = re.compile(r"\n[^\S\n]*(?=\n)")
#: White space, or the end of a clause in scripts without spaces.
_SPACE: Final = re.compile(rf"[\s{CLAUSES}]")
_PARAGRAPH: Final = re.compile(r"\S[^\n]*+(?:\n(?!\n)[^\n]*+)*+")

#: Word endings that the full-text index strips. A search for `indexes` may therefore match a note that
#: contains only `index` or `indexing`.
_ENDING: Final = re.compile(r"(?<=[a-z]{3})(?:ations?|ings?|ies|ied|es|ed|ely|ly|s|e|y)$")
_DOUBLED: Final = re.compile(r"([bdgmnprt])\1$")


@frozen
class Term:
    """A folded word and its search form.

    The search form is the stem, or the word itself in a script without spaces.
    """

    word: str
    stem: str
    weight: float
    is_unsegmented: bool = False


@frozen
class Terms:
    """The weighted terms of a query, prepared once and used for any number of notes."""

    terms: tuple[Term, ...] = ()
    #: The sum of all weights.
    total: float = 0.0

    @classmethod
    def of(cls, query: str, idf: Mapping[str, float], forms: WordForms = NO_FORMS) -> Self:
        """Create the terms of a query. `forms` has the stems of words that are not in English.

        `idf` contains the weights of the query's content stems. Function words are ignored.

        A stem that is not in `idf` gets the mean weight. A run of characters in a script without spaces is
        split into bigrams.
        """
        found = dict.fromkeys(words(fold(query)))
        ignored = forms.function_words
        content = [word for word in found if word[1] not in ignored] or list(found)
        usual = sum(idf.values()) / len(idf) if idf else 1.0
        terms: dict[str, Term] = {}
        for is_unsegmented, word in content:
            for part in bigrams(word) if is_unsegmented else [word[:LONGEST_WORD]]:
                stem = part if is_unsegmented else _common(part, forms.stems.get(word)) or _stem(part)
                terms.setdefault(stem, Term(part, stem, _weigh(part, idf, usual), is_unsegmented))
        kept = nlargest(MOST_TERMS, terms.values(), key=lambda term: term.weight)
        return cls(tuple(kept), sum(term.weight for term in kept))


def _weigh(word: str, idf: Mapping[str, float], usual: float) -> float:
    """Return the idf of the longest stem that is the beginning of a word."""
    for length in range(len(word), 1, -1):
        beginning = word[:length]
        weight = idf.get(beginning) or idf.get(beginning[:-1] + "i")
        if weight:
            return weight
    return idf.get(word) or usual


class Snippet(NamedTuple):
    """A snippet, and the share (0..1) of the query's weight that it covers."""

    text: str
    share: float


#: Start and end of a match in folded text, the number of the term, and whether the match is the exact word.
_Place: TypeAlias = tuple[int, int, int, bool]


class _Window(NamedTuple):
    worth: float
    share: float
    start: int
    end: int
    piece: str
    #: True if folding kept all lengths, so that positions in the folded text are valid in the original text.
    is_aligned: bool


def find_passage(visible: str, terms: Terms) -> Snippet:
    """Return the 300-character window that covers the largest share of the query's weight.

    If several windows are equal, the first one is returned.

    `visible` must be the result of `visible_text`. A term matches where a word begins with its stem. In a
    script without spaces, a term matches anywhere. If nothing matches, the snippet's text is empty.
    """
    best: _Window | None = None
    for piece in pieces_of_lines(visible):
        window = _best_window(piece, terms)
        if window is not None and (best is None or window.worth > best.worth):
            best = window
    if best is None:
        return Snippet("", 0.0)
    start, end = best.start, best.end
    if not best.is_aligned:
        start = unfold_offset(best.piece, start)
        end = min(len(best.piece), start + end - best.start)
    return Snippet(cut_window(best.piece, start, end), best.share)


def mark_matches(text: str, terms: Terms) -> list[tuple[str, bool]]:
    """Split a short text into parts.

    Each part has a flag that is True for a match of a term. Adjacent matches are joined.
    """
    folded = fold(text)
    places: list[_Place] = []
    for number, term in enumerate(terms.terms):
        _find_places(folded, number, term, places)
    bounds: list[int] = []
    for start, end, _, _ in sorted(places):
        if bounds and start <= bounds[-1]:
            bounds[-1] = max(bounds[-1], end)
        else:
            bounds += (start, end)
    if len(folded) != len(text):
        bounds = unfold_offsets(text, bounds)
    edges = [0, *bounds, len(text)]
    parts = [(text[start:end], number % 2 == 1) for number, (start, end) in enumerate(pairwise(edges))]
    return [(part, is_match) for part, is_match in parts if part]


def plain_passage(text: str, title: str = "") -> str:
    """Return a chunk as readable text of at most 1,000 characters.

    If the chunk contains only the title, return an empty text.
    """
    text = text.lstrip()
    if title and text.startswith(title.strip()):
        text = text[len(title.strip()) :]
    text = tidy(visible_text(strip_passage(text)))
    if not any(not line.lstrip().startswith("#") for line in text.splitlines() if line.strip()):
        return ""
    return cut_at_word(text, LONGEST_CHUNK)


def first_prose(visible: str) -> str:
    """Return the first paragraph of visible text that is not a heading.

    The result is shown for notes without a matching passage.
    """
    shown = ""
    for piece in pieces_of_lines(visible):
        for found in _PARAGRAPH.finditer(piece):
            paragraph = found[0].strip()
            if paragraph.startswith("#") and "\n" not in paragraph:
                continue
            if len(paragraph) >= _LEAST_PROSE:
                start = found.start()
                stop = min(len(piece), start + WINDOW)
                if stop < len(piece):
                    stop = ending(piece, start, start + 1, stop, edges_at(piece, start))
                return shown_part(piece, start, stop)
            shown = shown or paragraph
    return tidy(shown)


def _best_window(piece: str, terms: Terms) -> _Window | None:
    """Return the best window of one piece of text, with positions in the folded piece."""
    folded = fold(piece)
    places: list[_Place] = []
    for number, term in enumerate(terms.terms):
        _find_places(folded, number, term, places)
    if not places:
        return None
    places.sort()
    first, last, covered, worth = _slide([term.weight for term in terms.terms], places)
    share = min(1.0, covered / terms.total)
    return _Window(worth, share, places[first][0], places[last][1], piece, len(folded) == len(piece))


def _slide(weights: Sequence[float], places: Sequence[_Place]) -> tuple[int, int, float, float]:
    """Return the best window.

    The result contains the indices of the window's first and last match, the weight that the window covers,
    and its total value.

    Each term is counted once, with its better form. Each further match in the window adds a little to the
    total. The loop calls no functions, because most of the time for a snippet is spent here.
    """
    exact, other = [0] * len(weights), [0] * len(weights)
    best = (0, 0, 0.0, -1.0)
    covered = extra = 0.0
    left = 0
    for right, (_, end, term, is_exact) in enumerate(places):
        weight = weights[term]
        extra += _REPEATED * weight
        former = 1.0 if exact[term] else _OTHER_FORM if other[term] else 0.0
        (exact if is_exact else other)[term] += 1
        covered += ((1.0 if exact[term] else _OTHER_FORM) - former) * weight
        while end - places[left][0] > WINDOW and left < right:
            _, _, gone, was_exact = places[left]
            left += 1
            weight = weights[gone]
            extra -= _REPEATED * weight
            former = 1.0 if exact[gone] else _OTHER_FORM
            (exact if was_exact else other)[gone] -= 1
            covered += ((1.0 if exact[gone] else _OTHER_FORM if other[gone] else 0.0) - former) * weight
        if covered + extra > best[3] + 1e-9:
            best = (left, right, covered, covered + extra)
    return best


def _find_places(folded: str, number: int, term: Term, places: list[_Place]) -> None:
    """Append the first 128 matches of a term in folded text to `places`."""
    stem, word, is_unsegmented = term.stem, term.word, term.is_unsegmented
    find = folded.find
    start = find(stem)
    if start < 0:
        return
    size, length = len(stem), len(folded)
    most = len(places) + _MOST_PLACES
    longest = size + _SUFFIXES[min(2, max(0, size - 2))]
    while start >= 0 and len(places) < most:
        end = start + size
        if is_unsegmented:
            places.append((start, end, number, True))
        elif not start or not folded[start - 1].isalnum():
            limit = start + longest
            while end < length and folded[end].isalnum() and end <= limit:
                end += 1
            if end <= limit or size == LONGEST_WORD:
                places.append((start, end, number, folded[start:end] == word))
        start = find(stem, start + 1)


def first_places(folded: str, terms: Terms) -> dict[int, int]:
    """Return the position of the first match of each term in folded text, by term number."""
    return places_among(folded, list(enumerate(terms.terms)))


def places_among(folded: str, numbered: Sequence[tuple[int, Term]]) -> dict[int, int]:
    """Return the position of the first match of each given term in folded text, by term number."""
    found: dict[int, int] = {}
    for number, term in numbered:
        start = folded.find(term.stem)
        if start >= 0:
            place = start if term.is_unsegmented else _first_place(folded, term, start)
            if place >= 0:
                found[number] = place
    return found


def _first_place(folded: str, term: Term, start: int) -> int:
    """Return the position from `start` on of the first word that has the stem of `term`, or -1."""
    size, length = len(term.stem), len(folded)
    longest = size + _SUFFIXES[min(2, max(0, size - 2))]
    for _ in range(_MOST_PLACES):
        if not start or not folded[start - 1].isalnum():
            end, limit = start + size, start + longest
            while end < length and folded[end].isalnum() and end <= limit:
                end += 1
            if end <= limit or size == LONGEST_WORD:
                return start
        start = folded.find(term.stem, start + 1)
        if start < 0:
            break
    return -1


def _common(word: str, stem: str | None) -> str:
    """Return the beginning that a word shares with its stem, or an empty text if that is too short."""
    common = "".join(
        letter
        for letter, _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, stem or "", strict=False))
    )
    return common if len(common) >= min(_LEAST_COMMON, len(word)) else ""


def _stem(term: str) -> str:
    """Strip an English word ending and the consonant that it doubles, approximately: `running` -> `run`."""
    stem = _ENDING.sub("", term)
    return _DOUBLED.sub(r"\1", stem) if stem != term else term


def truncate(content: str, max_length: int | None) -> tuple[str, bool]:
    """Return `content` cut to at most `max_length` characters, and whether any text was cut off.

    `None` and 0 mean no limit. A negative limit raises `InvalidInput`.
    """
    if max_length is not None and max_length < 0:
        raise InvalidInput(f"max_length must be 0 (no limit) or more, not {max_length}")
    if not max_length or len(content) <= max_length:
        return content, False
    return cut(content, max_length)[0], True


def cut(content: str, most: int) -> tuple[str, int]:
    """Cut `content` to at most `most` characters. Return the beginning and the position where it ends."""
    if most <= len(ELLIPSIS):
        end = whole(content, most)
        return content[:end], end
    budget = most - len(ELLIPSIS)
    blank = _last(_BLANK_LINE, content, budget // 2 + 1, budget)
    if blank:
        shown = content[: blank.start()].rstrip()
        return shown, max(1, len(shown))
    sentence = _last(PLAIN_END, content, budget // 2, budget)
    if sentence:
        end = whole(content, sentence.end())
        return content[:end], end
    space = _last(_SPACE, content, 0, budget)
    end = budget if space is None else space.start() if space[0].isspace() else space.end()
    shown = beginning(content, end).rstrip()
    # A blank beginning is skipped, so that a caller that continues at the returned position makes progress.
    return shown + ELLIPSIS, len(shown) or whole(content, budget)


def _last(pattern: re.Pattern[str], content: str, start: int, budget: int) -> re.Match[str] | None:
    """Return the last match in `content[start:budget]`. The pattern may also examine the next character."""
    matches = pattern.finditer(content, start, budget + 1)
    last = deque((match for match in matches if match.end() <= budget), maxlen=1)
    return last[0] if last else None
