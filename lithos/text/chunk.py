"""Cutting a note into chunks for embedding (docs/spec/notes.md §10).

Chunks are verbatim slices: text is seen as nested spans (paragraphs, sentences, words, characters),
neighbours are packed while they fit, and a span that is too long is packed from its parts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import date
from typing import Final, TypeAlias

from attrs import frozen

from lithos.text.markdown import strip_passage
from lithos.text.pieces import cut_at_spaces, matches_in_lines, matches_of_space

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
#: Distinct dates of a text that are spelled out in addition; the first ones.
MOST_DATES: Final = 100

#: Looks behind the year for what is before it: a pattern that begins with digits is searched much faster.
_ISO_DATE: Final = re.compile(r"([0-9]{4})(?<![\w-][0-9]{4})-([0-9]{2})-([0-9]{2})(?![0-9-])(T(?=[0-9]))?")


def spell_dates(text: str) -> str:
    """Return a short text with each ISO date (`2026-03-05`) in words (`5 March 2026`).

    Other text is unchanged.
    """
    return _ISO_DATE.sub(_spell, text)


def dates_in_words(text: str) -> str:
    """Return the ISO dates of a text in words, each once, one per line; empty without any."""
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

#: Separates paragraphs.
_BLANK_LINES: Final = re.compile(r"\n(?:[^\S\n]*\n)+")
#: The end of a sentence, with the white space after it. The first three marks need white space after them.
#: The pattern begins with characters, not with a lookbehind, because that takes a third of the time.
_SENTENCE_END: Final = re.compile(r"[.!?。！？]\s*")
_NEED_SPACE: Final = ".!?"
_SPACE: Final = re.compile(r"\s+")
#: Levels: paragraphs, sentences, words; below words there are only characters.
_SENTENCES: Final = 1
_WORDS: Final = 2
_HEADING_OR_FENCE: Final = re.compile(
    r"^ {0,3}(?:(?P<marks>#{1,6})(?P<heading>[ \t][^\n]*)?|(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*))$",
    re.MULTILINE,
)


@frozen
class Chunk:
    """A slice of a note: `text` is shown in snippets, `context` is the title and the headings above it."""

    index: int
    text: str
    context: str

    @property
    def embedded(self) -> str:
        """The text that is embedded: the context line, a line break and the text as it is indexed."""
        return spell_dates(f"{self.context}\n" if self.context else "") + self.indexed

    @property
    def indexed(self) -> str:
        """The text with dates in words, and without the addresses of images."""
        return spell_dates(strip_passage(self.text))


def chunk_text(title: str, content: str, *, chunk_size: int = 500, chunk_max: int = 1000) -> list[Chunk]:
    """Cut title, blank line and content into chunks of about `chunk_size` characters, none over `chunk_max`.

    Linear in the length of the text; empty text has no chunks.
    """
    text = f"{title}\n\n{content}".strip()
    spans = list(_spans(text, chunk_size, chunk_max))
    contexts = _contexts(title, text, spans)
    return [
        Chunk(index, text[start:end], context)
        for index, ((start, end), context) in enumerate(zip(spans, contexts, strict=True))
    ]


def chunk_spans(title: str, content: str, chunk_size: int, chunk_max: int) -> Iterator[Span]:
    """Return where the chunks of `chunk_text` begin and end in `content`. Positions in the title are below 0.

    The chunks are found one by one, so a caller that needs only the first few does not pay for the others.
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
    """Join neighbouring parts of `span` while they fit in `size`; a part over `longest` is packed alone."""
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
    position, end = span
    blank_lines = (found.span() for found in matches_of_space(_BLANK_LINES, text, *span))
    for start, stop in _sentence_ends(text, span) if level == _SENTENCES else blank_lines:
        if start > position:
            yield position, start
        position = stop
    if position < end:
        yield position, end


def _sentence_ends(text: str, span: Span) -> Iterator[Span]:
    """Return the ends of sentences: white space after a mark, or the mark itself where it needs no white
    space.
    """
    for found in matches_of_space(_SENTENCE_END, text, *span):
        mark, end = found.start(), found.end()
        if end > mark + 1 or text[mark] not in _NEED_SPACE:
            yield mark + 1, end


def _pack_words(text: str, span: Span, size: int, longest: int) -> Iterator[Span]:
    """Return the result of `_pack` for the words of a span.

    It moves from one end of a pack to the next, not word by word.
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
        else:  # a word longer than `size`
            spaces = matches_of_space(_SPACE, text, start + size, end)
            stop = next((found.start() for found in spaces), end)
            if stop - start > longest:
                yield from ((at, min(at + size, stop)) for at in range(start, stop, size))
            else:
                yield start, stop
        start = _skip_space(text, stop, end)


def _skip_space(text: str, start: int, end: int) -> int:
    found = _SPACE.match(text, start, end)
    return found.end() if found else start


def _contexts(title: str, text: str, spans: list[Span]) -> Iterator[str]:
    """Yield the context line of each span: the title and the headings above the span's first line."""
    title_line = " ".join(title.split())[:CONTEXT_MAX]
    pending = list(scan_headings(text, len(title.lstrip())))[::-1]
    above: list[tuple[int, str]] = []
    for start, _ in spans:
        while pending and pending[-1][0] <= start:
            at, level, heading = pending[-1]
            while above and above[-1][0] >= level:
                above.pop()
            if at == start:  # the span opens with it: it is not above
                break
            pending.pop()
            if heading:
                above.append((level, heading))
        headings = " > ".join(heading for _, heading in above)
        yield " - ".join(filter(None, (title_line, headings)))[:CONTEXT_MAX].rstrip()


def scan_headings(text: str, start: int = 0) -> Iterator[tuple[int, int, str]]:
    """Yield start, level and text of the ATX headings outside fenced code, beginning at `start`."""
    fence = ""
    for match in matches_in_lines(_HEADING_OR_FENCE, text, start):
        mark, info = match["fence"], (match["info"] or "").strip()
        if fence:
            closes = mark and mark.startswith(fence) and not info
            fence = "" if closes else fence
        elif mark:
            fence = "" if mark[0] == "`" and "`" in info else mark
        else:
            # Without surrounding space and a closing run of `#`.
            name = (match["heading"] or "").strip()
            bare = name.rstrip("#")
            name = name if bare and not bare[-1].isspace() else bare.strip()
            yield match.start(), len(match["marks"]), name[:CONTEXT_MAX]


#: Raised when `Chunk.embedded` changes: 2, dates in words.
EMBEDDED_FORM: Final = 3


@frozen
class ChunkSizes:
    """Characters of chunks: `size` is `search.chunk_size`."""

    size: int

    @property
    def maximum(self) -> int:
        """Characters that no chunk exceeds."""
        return 2 * self.size

    def chunks(self, title: str, content: str) -> list[Chunk]:
        """Return the chunks of a note."""
        return chunk_text(title, content, chunk_size=self.size, chunk_max=self.maximum)

    def spans(self, title: str, content: str) -> Iterator[Span]:
        """Yield where the chunks of a note begin and end in its content, one by one (`chunk_spans`)."""
        return chunk_spans(title, content, self.size, self.maximum)

    def mix(self, stamp: int) -> int:
        """Mix chunk sizes and the form of what is embedded into a stamp: others make all notes stale."""
        form = f"{stamp}:{self.size}:{self.maximum}:{EMBEDDED_FORM}"
        digest = hashlib.blake2b(form.encode(), digest_size=8).digest()
        return int.from_bytes(digest) >> 1
