"""The passages of a note. A briefing is composed of them.

A passage is a chunk of the note from the vector index (`text.chunk`: paragraphs that fit into about 500
characters), cut at the start of each section. Each passage therefore has the similarity of its chunk and
belongs to exactly one section. Headings alone are not passages, because the path of the section has the same
words.

The probability that a passage answers a query is the note's probability times the passage's probability
within the note:

P(p) = (1 - WITHIN) x P(n) x softmax(WORDS x coverage + MEANING x cosine + LEAD x lead)
+ WITHIN x Q(n) x the share of the note that p is         both over the passages of n
P(n)   proportional to exp(STEEPNESS x (s_n / s_max - 1))        s_n: the score that ranked the note
Q(n)   the same, steeper with the budget: if only the note is known, all of the best note comes first

`coverage` is the share of the query's idf-weighted terms in the passage (terms that occur only in the
section's path count less). `cosine` is the similarity of its chunk. `lead` is like `coverage`, but with each
term weighted by its position: early terms count more. This is a log-linear model, as in learning to rank,
mixed with a model that uses only the note. An answer often shares no word with the question (a turn of a
conversation, a row of a table), but is still in the right note. WITHIN grows with the budget, up to a limit:
the first tokens are for passages that match, the last tokens for passages that hardly match. A large budget
therefore shows more of the best notes instead of a little of further notes. Passages unrelated to the query
have only the second part. Passages of a note without any related passage have neither part. The numbers were
fitted on collections (`bench/context.py` of ee169747).
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from lithos.kernel.values.graphemes import beginning
from lithos.search.ranking.replies import is_greeting
from lithos.text.chunk import chunk_spans
from lithos.text.excerpt_bounds import tidy_edge
from lithos.text.hidden_text import HIDDEN, NO_FRAME, Frame, hide, without_hidden
from lithos.text.outline.outline import TOP, Outline, read_outline, scan_outline
from lithos.text.pieces import PIECE, matches_in_lines
from lithos.text.snippet import Terms, first_places, places_among
from lithos.text.words.analysis import fold

#: Weight of a term that occurs only in the section path, or only in the title.
IN_SECTION: Final = 0.7
IN_TITLE: Final = 0.3
#: Distance in characters after which the weight of a term in the lead of a passage is halved.
HALVING: Final = 200
#: A passage is related to the query if it has this share of the query, or else this similarity.
LEAST_COVERAGE: Final = 0.12
LEAST_NEARNESS: Final = 0.3


@frozen(kw_only=True)
class Weights:
    """Parameters of the model in the module docstring, and of the choice (`memory.briefing.choice`)."""

    steepness: float = 6.0
    words: float = 6.0
    meaning: float = 5.0
    lead: float = 1.0
    scale: float = 0.7
    query: float = 0.2
    least: float = 0.001
    kept: float = 0.1
    #: WITHIN per thousand tokens of budget, and the maximum of WITHIN.
    within: float = 0.075
    within_most: float = 0.3
    #: Factor by which Q(n) is steeper than P(n), per thousand tokens of budget. The minimum is 1, and the
    #: next field is the maximum.
    steeper: float = 1.0
    steeper_most: float = 2.0
    #: If True, passages that only contain greetings or farewells are skipped, unless the note has no other
    #: passages.
    skips_greetings: bool = False


@frozen(kw_only=True, eq=False)
class SourceNote:
    """A note that may be shown, as read from disk. Sources are ordered best first, and by id if equal.

    `score` is the ranking score of the note. `nearness` is the similarity of each chunk to the query, if
    known. `reasons` say how the note was found.
    """

    id: str
    title: str
    path: str
    version: int
    score: float
    split: SplitNote
    nearness: Sequence[float] = ()
    reasons: Sequence[str] = ()
    #: Date inside the note in ISO form, and the date as written in the note. Both are "" if the note has no
    #: date.
    date: str = ""
    dated: str = ""
    #: Project of a note that is not of the agent's project, or "".
    project: str = ""


@frozen(eq=False)
class WeightedPassage:
    """A passage with its source number, its position, its probability, and its share of each query term."""

    source: int
    place: int
    passage: Passage
    worth: float
    shares: Mapping[int, float]
    nearness: float


def weigh_passages(
    sources: Sequence[SourceNote], terms: Terms, weights: Weights, budget: int = 2_000
) -> list[WeightedPassage]:
    """Return the passages that are related to the query, by source and position.

    If a note has no related passage, it is left out.
    """
    scores = [source.score for source in sources]
    within = min(weights.within_most, weights.within * budget / 1_000)
    matched = _shares(scores, weights.steepness, 1 - within)
    steeper = min(weights.steeper_most, max(1.0, weights.steeper * budget / 1_000))
    whole = _shares(scores, weights.steepness * steeper, within)
    weighed: list[WeightedPassage] = []
    for number, source in enumerate(sources):
        weighed += _weigh(number, source, terms, weights, (matched[number], whole[number]))
    return weighed


def _shares(scores: Sequence[float], steepness: float, of: float) -> list[float]:
    """Return the probability of each source to contain the answer, computed from its score.

    The sum of the probabilities is `of`.
    """
    highest = max(scores, default=0.0)
    odds = [math.exp(steepness * (score / highest - 1)) if highest > 0 else 1.0 for score in scores]
    total = math.fsum(odds) or 1.0
    return [of * each / total for each in odds]


def _weigh(
    number: int, source: SourceNote, terms: Terms, weights: Weights, prior: tuple[float, float]
) -> list[WeightedPassage]:
    """Return the passages of one source with their weights.

    `prior` has two probabilities: the first is shared by the matching passages, and the second by all
    passages.
    """
    title = f"{source.title} {source.dated}" if source.dated else source.title
    titled = dict.fromkeys(first_places(fold(title), terms), IN_TITLE)
    split = source.split
    # Fold the whole text if that preserves positions. A term that the note lacks then needs only one search.
    whole = fold(split.content) if split.content.isascii() else None
    sought = [(term, each) for term, each in enumerate(terms.terms) if whole is None or each.stem in whole]
    by_section: dict[int, tuple[dict[int, float], float]] = {}
    found: list[tuple[int, Passage, float | None, Mapping[int, float], float]] = []
    for place, passage in enumerate(split.passages):
        above = by_section.get(passage.section)
        if above is None:
            path = fold(split.sections[passage.section]) if passage.section else ""
            shares = titled | dict.fromkeys(first_places(path, terms), IN_SECTION)
            above = by_section[passage.section] = shares, _sum(shares, terms)
        shares, coverage = above
        places = (
            places_among(
                fold(split.text_of(passage)) if whole is None else whole[passage.start : passage.end], sought
            )
            if sought
            else {}
        )
        lead = 0.0
        if places:
            shares = shares | dict.fromkeys(places, 1.0)
            coverage = _sum(shares, terms)
            lead = _sum({term: 1 / (1 + at / HALVING) for term, at in places.items()}, terms)
        near = source.nearness[passage.chunk] if passage.chunk < len(source.nearness) else 0.0
        has_to_do = coverage >= LEAST_COVERAGE or near >= LEAST_NEARNESS
        energy = (
            weights.words * coverage + weights.meaning * near + weights.lead * lead if has_to_do else None
        )
        found.append((place, passage, energy, shares, near))
    if weights.skips_greetings:
        said = [each for each in found if not is_greeting(split.text_of(each[1]))]
        found = said or found
    parts = _probabilities([(energy, passage) for _, passage, energy, _, _ in found], *prior)
    return [
        WeightedPassage(number, place, passage, part, shares, near)
        for part, (place, passage, _, shares, near) in zip(parts, found, strict=False)
    ]


def _probabilities(
    found: Sequence[tuple[float | None, Passage]], matched: float, whole: float
) -> list[float]:
    """Return P(p) for each passage of a note, computed from its energy.

    If no passage is related to the query, return an empty list.
    """
    energies = [energy for energy, _ in found if energy is not None]
    if not energies:
        return []
    peak = max(energies)
    total = math.fsum(math.exp(energy - peak) for energy in energies)
    length = sum(passage.end - passage.start for _, passage in found)
    return [
        (0.0 if energy is None else matched * math.exp(energy - peak) / total)
        + whole * (passage.end - passage.start) / length
        for energy, passage in found
    ]


def _sum(shares: Mapping[int, float], terms: Terms) -> float:
    if not terms.total:
        return 0.0
    return math.fsum(terms.terms[term].weight * share for term, share in shares.items()) / terms.total


#: Maximum characters and lines of a note in which underlined headings are recognised. In longer notes, only
#: `#` headings are recognised.
MOST_PARSED: Final = 24_000
MOST_PARSED_LINES: Final = 500
#: Maximum number of passages per note. `lithos_read` can read the text after them.
MOST_PASSAGES: Final = 4_000

#: Number of prose characters that take as long to scan as one heading, fence or possible underline.
MARK: Final = 100
PARSED_LINE: Final = 200
#: Number of characters that are always read of a note.
LEAST_TEXT: Final = 20_000

_MARK: Final = re.compile(r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:#{1,6}(?!\S)|`{3}|~{3})", re.MULTILINE)
_LINE: Final = re.compile(r"^", re.MULTILINE)
#: Lines that may underline a heading, and comments. A `#` in a comment does not start a heading.
_NEEDS_PARSER: Final = re.compile(r"^[^\s#>|`~][^\n]*\n {0,3}(?:=+|-{2,})[ \t]*$|^ {0,3}<", re.MULTILINE)
_HEADING_LINE: Final = re.compile(r" {0,3}#{1,6}(?:[ \t][^\n]*)?(?:\n|\Z)")
_UNDERLINED: Final = re.compile(r"[^\n]+\n {0,3}(?:=+|-+)[ \t]*(?:\n|\Z)")
_BLANK: Final = re.compile(r"[\s\x00]*")
_WORD: Final = re.compile(r"[^\W_]")


@frozen
class Passage:
    """The passage `content[start:end]`, with the numbers of its section and its chunk."""

    start: int
    end: int
    section: int
    chunk: int


@frozen
class SplitNote:
    """The content and its passages in order. `sections` are the paths that `lithos_read` accepts.

    Each character that must not be shown is replaced by `HIDDEN`.
    """

    content: str
    sections: Sequence[str]
    passages: Sequence[Passage]

    def text_of(self, passage: Passage) -> str:
        """Return the text of a passage without hidden characters."""
        return without_hidden(self.content[passage.start : passage.end])


def affordable(content: str, most: int) -> tuple[str, int]:
    """Return the part of a content that can be split as fast as `most` characters of prose.

    Also return its cost.

    `most` is at least `LEAST_TEXT`.
    """
    content = beginning(content, most)
    price, marks = MARK, content.count("#") + content.count("```") + content.count("~~~")
    lines = content.count("\n") + 1
    if len(content) + max(price * marks, PARSED_LINE * lines) > LEAST_TEXT and _is_parsed(content):
        price, marks = PARSED_LINE, lines
    if len(content) + price * marks <= most:  # Nearly every note takes this path.
        return content, len(content) + price * marks
    cost, pattern = 0, _LINE if price == PARSED_LINE else _MARK
    for number, found in enumerate(matches_in_lines(pattern, content, 0), 1):
        if found.start() + price * number > most:
            return content[: found.start()], most
        cost = price * number
    return content, len(content) + cost


def split_note(title: str, content: str, size: int, maximum: int, frame: Frame = NO_FRAME) -> SplitNote:
    """Return the passages of a note without comments and shared blocks.

    The duration is linear in its length.
    """
    names, starts = _own_sections(content)
    shown = hide(content, frame)
    passages: list[Passage] = []
    edge = former = 0
    for number, (begin, end) in enumerate(chunk_spans(title, content, size, maximum)):
        start = max(0, begin) if edge == former else edge  # take the text that the previous passage left out
        former, edge = end, tidy_edge(shown, end, start)
        while start < edge:
            place = bisect_right(starts, start) - 1
            stop = min(edge, starts[place + 1] if place + 1 < len(starts) else edge)
            found = _trimmed(shown, start, stop, has_heading=start == starts[place])
            if found is not None and _WORD.search(shown, *found) is not None:
                passages.append(Passage(*found, place, number))
            start = stop
        if len(passages) >= MOST_PASSAGES:
            break
    return SplitNote(shown, names, passages)


def _own_sections(content: str) -> tuple[list[str], list[int]]:
    """Return the path of each section, and the position at which its text without subsections starts."""
    outline = _outline(content)
    found = sorted((each for each in outline.sections if each.level), key=lambda each: each.start)
    return [TOP, *(each.path for each in found)], [-1, *(each.start for each in found)]


def _outline(content: str) -> Outline:
    """Return the headings of a note.

    The parser is used only if a simple scan could give another result and parsing takes only milliseconds.
    """
    return read_outline(content) if _is_parsed(content) else scan_outline(content)


def _is_parsed(content: str) -> bool:
    return (
        len(content) <= MOST_PARSED
        and content.count("\n") + content.count("\r") < MOST_PARSED_LINES
        and _NEEDS_PARSER.search(content) is not None
    )


def _trimmed(content: str, start: int, end: int, *, has_heading: bool) -> tuple[int, int] | None:
    """Return the passage without its heading and surrounding white space.

    Return None if nothing else remains.
    """
    if has_heading:
        line = _HEADING_LINE.match(content, start, end) or _UNDERLINED.match(content, start, end)
        start = line.end() if line is not None else start
    while start < end:
        space = _BLANK.match(content, start, min(end, start + PIECE))
        if space is None or space.end() == start:
            break
        start = space.end()
    while end > start and (content[end - 1].isspace() or content[end - 1] == HIDDEN):
        end -= 1
    return (start, end) if start < end else None
