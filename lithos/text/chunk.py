"""Splitting of notes into chunks for embedding (docs/spec/notes.md §10).

Chunks are verbatim slices of a note. The text is treated as nested spans: paragraphs, sentences, words and
characters. Neighbouring spans are combined into a chunk while they fit. A span that is too long is split into
smaller spans, which are combined in the same way.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import date
from typing import Final, TypeAlias

from attrs import frozen

from lithos.kernel.values.graphemes import beginning, whole
from lithos.text.markdown import strip_passage
from lithos.text.pieces import cut_at_spaces, matches_in_lines, matches_of_space
from lithos.text.sentences import CLAUSES, GAP, GAP_ASCII, last_match

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
#: Maximum number of distinct dates per text that are also written in words. The first dates are used.
MOST_DATES: Final = 100

#: The lookbehind checks the text before the year, but is placed after the year. A pattern that begins with
#: digits is searched much faster.
_ISO_DATE: Final = re.compile(r"([0-9]{4})(?<![\w-][0-9]{4})-([0-9]{2})-([0-9]{2})(?![0-9-])(T(?=[0-9]))?")


def spell_dates(text: str) -> str:
    """Return a short text with each ISO date (`2026-03-05`) in words (`5 March 2026`).

    The rest of the text is unchanged.
    """
    return _ISO_DATE.sub(_spell, text)


def dates_in_words(text: str) -> str:
    """Return the ISO dates of a text in words, one per line and without duplicates.

    If there are no dates, return an empty text.
    """
    found: dict[str, None] = {}
    for piece in cut_at_spaces(text):
        for match in _ISO_DATE.finditer(piece):
            words = _spell(match)
            if words != match[0]:
                found[words.rstrip()] = None
            if len(found) == MOST_DATES:
                return "\n".join(found)
    return "\n".join(found)


def _spell(match: re.Match[str]) -> str:
    year, month, day = (int(part) for part in match.group(1, 2, 3))
    try:
        date(year, month, day)
    except ValueError:
        return match[0]
    return f"{day} {MONTHS[month - 1]} {match[1]}{' ' * bool(match[4])}"


CONTEXT_MAX: Final = 200

Span: TypeAlias = tuple[int, int]

#: Separator between paragraphs.
_BLANK_LINES: Final = re.compile(r"\n(?:[^\S\n]*\n)+")
_SPACE: Final = re.compile(r"\s+")
_CLAUSE: Final = re.compile(f"[{CLAUSES}]")
#: Index of the sentence level. The levels are paragraphs, sentences and words. The level below words is
#: single characters.
_SENTENCES: Final = 1
_WORDS: Final = 2
_HEADING_OR_FENCE: Final = re.compile(
    r"^ {0,3}(?:(?P<marks>#{1,6})(?P<heading>[ \t][^\n]*)?|(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*))$",
    re.MULTILINE,
)


@frozen
class Chunk:
    """A slice of a note.

    Snippets show `text`. `context` contains the title and the headings above the slice.
    """

    index: int
    text: str
    context: str

    @property
    def embedded(self) -> str:
        """Return the text to embed: the context line, a line break and the indexed text."""
        return spell_dates(f"{self.context}\n" if self.context else "") + self.indexed

    @property
    def indexed(self) -> str:
        """Return the text to index: dates are also written in words, and image addresses are removed."""
        return spell_dates(strip_passage(self.text))


def chunk_text(title: str, content: str, *, chunk_size: int = 500, chunk_max: int = 1000) -> list[Chunk]:
    """Split a note into chunks. The note is its title, a blank line and its content.

    Each chunk has about `chunk_size` characters and at most `chunk_max`.

    The split takes linear time. An empty text yields no chunks.
    """
    text = f"{title}\n\n{content}".strip()
    spans = list(_spans(text, chunk_size, chunk_max))
    contexts = _contexts(title, text, spans)
    return [
        Chunk(index, text[start:end], context)
        for index, ((start, end), context) in enumerate(zip(spans, contexts, strict=True))
    ]


def chunk_spans(title: str, content: str, chunk_size: int, chunk_max: int) -> Iterator[Span]:
    """Yield the position in `content` of each chunk of `chunk_text`. Positions in the title are negative.

    The chunks are found one by one, so a caller that needs only the first few does not wait for the rest.
    """
    full = f"{title}\n\n{content}"
    offset = len(full) - len(full.lstrip()) - len(title) - 2
    return ((start + offset, end + offset) for start, end in _spans(full.strip(), chunk_size, chunk_max))


def headings_of(content: str) -> str:
    """Return the headings outside fenced code, one per line."""
    return "\n".join(text for _, _, text in scan_headings(content))


def _spans(text: str, chunk_size: int, chunk_max: int) -> Iterator[Span]:
    if len(text) <= chunk_size:
        return iter([(0, len(text))] if text else [])
    return _pack(text, (0, len(text)), 0, min(chunk_size, chunk_max), chunk_max)


def _pack(text: str, span: Span, level: int, size: int, longest: int) -> Iterator[Span]:
    """Combine neighbouring parts of `span` while they fit in `size`.

    Parts longer than `longest` are split again.
    """
    if level == _WORDS:
        yield from _pack_words(text, span, size, longest)
        return
    packed: Span | None = None
    for start, end in _parts(text, span, level):
        if packed and end - packed[0] <= size:
            packed = packed[0], end
            continue
        if packed:
            yield packed
        packed = start, end
        if end - start > longest:
            packed = None
            yield from _pack(text, (start, end), level + 1, size, longest)
    if packed:
        yield packed


def _parts(text: str, span: Span, level: int) -> Iterator[Span]:
    is_ascii = text.isascii()
    position, end = span
    blank_lines = (found.span() for found in matches_of_space(_BLANK_LINES, text, *span))
    for gap in _sentence_gaps(text, span) if level == _SENTENCES else blank_lines:
        start, stop = gap
        if not is_ascii or text[start - 1] == "\r":
            start, stop = whole(text, start, position), whole(text, stop, position)
        if start > position:
            yield position, start
        position = stop
    if position < end:
        yield position, end


def _sentence_gaps(text: str, span: Span) -> Iterator[Span]:
    """Yield the white space between sentences. It is empty if the script needs none."""
    for found in matches_of_space(GAP_ASCII if text.isascii() else GAP, text, *span):
        yield found.span(found.lastindex or 0)


def _pack_words(text: str, span: Span, size: int, longest: int) -> Iterator[Span]:
    """Yield the chunks of a span that is split into words, like `_pack`.

    The function jumps from the end of one chunk to the end of the next, instead of adding word by word.
    """
    start, end = _skip_space(text, *span), span[1]
    while start < end:
        if end - start <= size:
            yield start, start + len(text[start:end].rstrip())
            return
        window = text[start : start + size + 1]
        kept = window.rstrip()
        words = [kept] if len(kept) < len(window) else window.rsplit(None, 1)
        if len(words) == 2 or len(kept) < len(window):
            stop = start + len(words[0])
            yield start, stop
        else:  # The word is longer than `size`.
            spaces = matches_of_space(_SPACE, text, start + size, end)
            stop = next((found.start() for found in spaces), end)
            if stop - start > longest:
                yield from _cut_word(text, (start, stop), size)
            else:
                yield start, stop
        start = _skip_space(text, stop, end)


def _cut_word(text: str, span: Span, size: int) -> Iterator[Span]:
    """Yield the chunks of a span without spaces. A chunk ends after a clause or else a grapheme."""
    start, stop = span
    while stop - start > size:
        at = start + size
        clause = None if text[start:at].isascii() else last_match(_CLAUSE, text, start + size // 2, at)
        at = whole(text, clause.end() if clause else at, start)
        yield start, at
        start = at
    yield start, stop


def _skip_space(text: str, start: int, end: int) -> int:
    found = _SPACE.match(text, start, end)
    if found is None:
        return start
    return found.end() if text.isascii() else whole(text, found.end(), start)


def _contexts(title: str, text: str, spans: list[Span]) -> Iterator[str]:
    """Yield the context line of each span: the title and the headings above its first line."""
    title_line = beginning(" ".join(title.split()), CONTEXT_MAX)
    pending = list(scan_headings(text, len(title.lstrip())))[::-1]
    above: list[tuple[int, str]] = []
    for start, _ in spans:
        while pending and pending[-1][0] <= start:
            at, level, heading = pending[-1]
            while above and above[-1][0] >= level:
                above.pop()
            if at == start:  # The span begins with this heading, so the heading is not above it.
                break
            pending.pop()
            if heading:
                above.append((level, heading))
        headings = " > ".join(heading for _, heading in above)
        yield beginning(" - ".join(filter(None, (title_line, headings))), CONTEXT_MAX).rstrip()


def scan_headings(text: str, start: int = 0) -> Iterator[tuple[int, int, str]]:
    """Yield position, level and text of each ATX heading outside fenced code, from `start` on."""
    fence = ""
    for match in matches_in_lines(_HEADING_OR_FENCE, text, start):
        mark, info = match["fence"], (match["info"] or "").strip()
        if fence:
            closes = mark and mark.startswith(fence) and not info
            fence = "" if closes else fence
        elif mark:
            fence = "" if mark[0] == "`" and "`" in info else mark
        else:
            # The name excludes surrounding spaces and a closing run of `#`.
            name = (match["heading"] or "").strip()
            bare = name.rstrip("#")
            name = name if bare and not bare[-1].isspace() else bare.strip()
            yield match.start(), len(match["marks"]), beginning(name, CONTEXT_MAX)


#: Version of the embedded text format. Increase it when `Chunk.embedded` or the chunks change. Version 2
#: added dates in words, and version 4 the ends of sentences in all scripts.
EMBEDDED_FORM: Final = 4


@frozen
class ChunkSizes:
    """Chunk sizes in characters. `size` is the setting `search.chunk_size`."""

    size: int

    @property
    def maximum(self) -> int:
        """Return the maximum length of a chunk in characters."""
        return 2 * self.size

    def chunks(self, title: str, content: str) -> list[Chunk]:
        """Return the chunks of a note."""
        return chunk_text(title, content, chunk_size=self.size, chunk_max=self.maximum)

    def spans(self, title: str, content: str) -> Iterator[Span]:
        """Yield the position of each chunk in the note's content, one by one, like `chunk_spans`."""
        return chunk_spans(title, content, self.size, self.maximum)

    def mix(self, stamp: int) -> int:
        """Mix the chunk sizes and `EMBEDDED_FORM` into a stamp.

        If the sizes or the form change, the stamp differs and all notes are stale.
        """
        form = f"{stamp}:{self.size}:{self.maximum}:{EMBEDDED_FORM}"
        digest = hashlib.blake2b(form.encode(), digest_size=8).digest()
        return int.from_bytes(digest) >> 1
