"""The passages of a note: what a briefing is put together from.

A passage is a chunk of the note as the vector index has it (`core.text.chunk`: paragraphs that fit into some
500 characters), cut where a section begins. So each has the similarity of its chunk and belongs to exactly
one section. Headings by themselves are no passages: the section's path says what they say.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from attrs import frozen

from lithos.core.history.outline import TOP, Outline, read_outline, scan_outline
from lithos.core.text.chunk import chunk_spans
from lithos.core.text.pieces import PIECE, matches_in_lines

#: Characters and lines of a note of which underlined headings are looked for; in longer ones only `#` makes
#: headings.
MOST_PARSED: Final = 24_000
MOST_PARSED_LINES: Final = 500
#: Passages of one note; what comes behind them is read with `lithos_read`.
MOST_PASSAGES: Final = 4_000

#: What takes as long to look through as so many characters of prose: a heading or a fence, and a line where
#: underlined headings are looked for.
MARK: Final = 100
PARSED_LINE: Final = 200
#: Characters of a note that are always looked through.
LEAST_TEXT: Final = 20_000

_MARK: Final = re.compile(r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:#{1,6}(?!\S)|`{3}|~{3})", re.MULTILINE)
_LINE: Final = re.compile(r"^", re.MULTILINE)
#: What may underline a heading, and comments, in which a `#` is none.
_NEEDS_PARSER: Final = re.compile(r"^[^\s#>|`~][^\n]*\n {0,3}(?:=+|-{2,})[ \t]*$|^ {0,3}<", re.MULTILINE)
_HEADING_LINE: Final = re.compile(r" {0,3}#{1,6}(?:[ \t][^\n]*)?(?:\n|\Z)")
_UNDERLINED: Final = re.compile(r"[^\n]+\n {0,3}(?:=+|-+)[ \t]*(?:\n|\Z)")
_BLANK: Final = re.compile(r"\s*")


@frozen
class Passage:
    """A passage: `content[start:end]`, the number of its section, and that of its chunk."""

    start: int
    end: int
    section: int
    chunk: int


@frozen
class SplitNote:
    """A content with its passages in order; `sections` are the paths that `lithos_read` knows."""

    content: str
    sections: Sequence[str]
    passages: Sequence[Passage]

    def text_of(self, passage: Passage) -> str:
        """The text of a passage."""
        return self.content[passage.start : passage.end]


def affordable(content: str, most: int) -> tuple[str, int]:
    """As much of a content as takes no longer to split than `most` characters of prose, and what it costs.

    `most` is at least `LEAST_TEXT`.
    """
    content = content[:most]
    price, marks = MARK, content.count("#") + content.count("```") + content.count("~~~")
    lines = content.count("\n") + 1
    if len(content) + max(price * marks, PARSED_LINE * lines) > LEAST_TEXT and _is_parsed(content):
        price, marks = PARSED_LINE, lines
    if len(content) + price * marks <= most:  # nearly every note
        return content, len(content) + price * marks
    cost, pattern = 0, _LINE if price == PARSED_LINE else _MARK
    for number, found in enumerate(matches_in_lines(pattern, content, 0), 1):
        if found.start() + price * number > most:
            return content[: found.start()], most
        cost = price * number
    return content, len(content) + cost


def split_note(title: str, content: str, size: int, maximum: int) -> SplitNote:
    """The passages of a note; linear in the length of its content."""
    names, starts = _own_sections(content)
    passages: list[Passage] = []
    for number, (begin, end) in enumerate(chunk_spans(title, content, size, maximum)):
        start = max(0, begin)
        while start < end:
            place = bisect_right(starts, start) - 1
            stop = min(end, starts[place + 1] if place + 1 < len(starts) else end)
            found = _trimmed(content, start, stop, has_heading=start == starts[place])
            if found is not None:
                passages.append(Passage(*found, place, number))
            start = stop
        if len(passages) >= MOST_PASSAGES:
            break
    return SplitNote(content, names, passages)


def _own_sections(content: str) -> tuple[list[str], list[int]]:
    """The path of each section and where its own text begins, without the sections within it."""
    outline = _outline(content)
    found = sorted((each for each in outline.sections if each.level), key=lambda each: each.start)
    return [TOP, *(each.path for each in found)], [-1, *(each.start for each in found)]


def _outline(content: str) -> Outline:
    """Its headings: the parser's where another look might differ, as far as that takes milliseconds."""
    return read_outline(content) if _is_parsed(content) else scan_outline(content)


def _is_parsed(content: str) -> bool:
    return (
        len(content) <= MOST_PARSED
        and content.count("\n") + content.count("\r") < MOST_PARSED_LINES
        and _NEEDS_PARSER.search(content) is not None
    )


def _trimmed(content: str, start: int, end: int, *, has_heading: bool) -> tuple[int, int] | None:
    """The passage without its heading and without white space around it; None when nothing is left."""
    if has_heading:
        line = _HEADING_LINE.match(content, start, end) or _UNDERLINED.match(content, start, end)
        start = line.end() if line is not None else start
    while start < end:
        space = _BLANK.match(content, start, min(end, start + PIECE))
        if space is None or space.end() == start:
            break
        start = space.end()
    while end > start and content[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None
