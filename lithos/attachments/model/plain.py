"""Plain text: decoding of any encoding, and division into parts that begin at lines."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from lithos.attachments.model.parts import FilePart, NotExtractable, clean
from lithos.kernel.values.graphemes import whole

#: Maximum lines and characters of a part. After half of either limit, a part ends at the next paragraph end.
PART_LINES: Final = 40
PART_CHARACTERS: Final = 2_000
#: A piece of text: its line number, the position of its first character in the line (both from 1), and its
#: text.
Piece: TypeAlias = tuple[int, int, str]

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def read_text(data: bytes) -> Iterator[FilePart]:
    """Yield parts of about 40 lines or 2,000 characters.

    Raises `NotExtractable` if the file is not text.
    """
    return pack(_lines(decode(data)))


def decode(data: bytes, otherwise: str = "cp1252") -> str:
    """Decode bytes by their byte order mark, or as UTF-8, or in a usual encoding of older programs.

    Line ends become newlines. Raises `NotExtractable`.
    """
    text = _decoded(data, otherwise)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decoded(data: bytes, otherwise: str) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    if b"\0" in data:
        raise NotExtractable("it has binary data, not text")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode(otherwise, "replace")


def pack(pieces: Iterable[Piece]) -> Iterator[FilePart]:
    """Join pieces (lines or blocks) to parts. An empty piece marks the end of a paragraph.

    The place of a part is its line number, or `line:character` if an earlier part begins in that line.
    """
    held = list[str]()
    length, start, last_line = 0, (1, 1), 0
    for line, column, written in pieces:
        for offset, text in _cut(written):
            is_full = len(held) >= PART_LINES or length + len(text) > PART_CHARACTERS
            is_enough = len(held) >= PART_LINES // 2 or length >= PART_CHARACTERS // 2
            if held and (is_full or (is_enough and not text.strip())):
                if told := clean("\n".join(held)):
                    yield FilePart(_place(start, last_line), told)
                    last_line = start[0]
                held, length = [], 0
            if not held:
                if not text.strip():
                    continue
                start = (line, column + offset)
            elif not text.strip() and not held[-1].strip():
                continue
            held.append(text)
            length += len(text) + 1
    if told := clean("\n".join(held)):
        yield FilePart(_place(start, last_line), told)


def _place(start: tuple[int, int], last_line: int) -> str:
    line, column = start
    return str(line) if line != last_line else f"{line}:{column}"


_EMPTY: Final = re.compile("\n+")
#: The text of one part, up to the last white space in its second half.
_SLICE: Final = re.compile(
    rf"(?s:.{{{PART_CHARACTERS // 2},{PART_CHARACTERS - 1}}}\s)|(?s:.{{1,{PART_CHARACTERS}}})"
)


def _cut(text: str) -> Iterator[tuple[int, str]]:
    """Yield the slices of a long line with their offsets."""
    if len(text) <= PART_CHARACTERS:
        yield 0, text
        return
    start = 0
    while (found := _SLICE.match(text, start)) is not None:
        end = whole(text, found.end(), start)
        yield start, text[start:end]
        start = end


def _lines(text: str) -> Iterator[Piece]:
    # Process one line at a time, because a list of 30 million lines would use half of the memory limit. Empty
    # lines are skipped.
    start, number = 0, 1
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield number, 1, text[start:end]
        start, number = end + 1, number + 1
        if (empty := _EMPTY.match(text, start)) is not None:
            yield number, 1, ""
            start, number = empty.end(), number + len(empty[0])
