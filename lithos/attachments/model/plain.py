"""Plain text: bytes of some encoding, and its division into parts that begin at lines."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from lithos.attachments.model.parts import FilePart, NotExtractable, clean

#: Lines and characters of a part, at most; half of either is enough where a paragraph ends.
PART_LINES: Final = 40
PART_CHARACTERS: Final = 2_000
#: A piece of a text: number of its line, of its first character there, both from 1, and what it says.
Piece: TypeAlias = tuple[int, int, str]

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def read_text(data: bytes) -> Iterator[FilePart]:
    """Return parts of some 40 lines, or 2,000 characters.

    Raises `NotExtractable` for a file that is not text.
    """
    return pack(_lines(decode(data)))


def decode(data: bytes, otherwise: str = "cp1252") -> str:
    """The text: by its byte order mark, else UTF-8, else what an older program would have written.

    Lines end by newlines. Raises `NotExtractable`.
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
    """Parts of the pieces, which are lines or blocks; an empty one is a paragraph's end.

    The place is the line, and for a second part that begins in the same one `line:character`.
    """
    held = list[str]()
    length, start, last_line = 0, (1, 1), 0
    for line, column, whole in pieces:
        for offset, text in _cut(whole):
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
#: A part's worth of text, up to the last blank of its second half.
_SLICE: Final = re.compile(
    rf"(?s:.{{{PART_CHARACTERS // 2},{PART_CHARACTERS - 1}}}\s)|(?s:.{{1,{PART_CHARACTERS}}})"
)


def _cut(text: str) -> Iterator[tuple[int, str]]:
    """Slices of a long line, each with its offset."""
    if len(text) <= PART_CHARACTERS:
        yield 0, text
        return
    for found in _SLICE.finditer(text):
        yield found.start(), found[0]


def _lines(text: str) -> Iterator[Piece]:
    # One by one: a list of 30 million lines would take half the memory there is. Empty ones are passed over.
    start, number = 0, 1
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield number, 1, text[start:end]
        start, number = end + 1, number + 1
        if (empty := _EMPTY.match(text, start)) is not None:
            yield number, 1, ""
            start, number = empty.end(), number + len(empty[0])
