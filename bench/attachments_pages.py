"""Pages of PDF files in five layouts: two columns, tables, headers and footers, scanned, right to left.

Text that does not fit on a page is left out, the paragraphs first that stand last.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Final

from bench.pdf_writer import A4, MARGIN, NARROW_WIDTH, Bitmap, Page, Run, text_width

WIDTH, HEIGHT = A4
SIZE: Final = 10.0
LEADING: Final = 14.0
GUTTER: Final = 24.0
COLUMN_SIZE: Final = 9.0
#: Words of at least so many letters are cut at the end of a line where a column is narrow.
_CUT: Final = 8
#: Pixels of a scanned page.
_COLUMNS, _ROWS = 124, 175


def wrap(text: str, width: float, size: float, *, cuts: bool = False) -> list[str]:
    """Lines of at most `width` points; with `cuts`, long words are hyphenated where they do not fit."""
    most = int(width / (size * NARROW_WIDTH / 1000))
    lines = [""]
    for word in text.split():
        room = most - len(lines[-1]) - 1
        if lines[-1] and room < len(word):
            if cuts and len(word) >= _CUT and room >= 4 and word.isalpha() and word.islower():
                cut = min(room - 1, len(word) - 3)
                lines[-1] += f" {word[:cut]}-"
                lines.append(word[cut:])
            else:
                lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def columns_page(heading: str, paragraphs: Sequence[str], number: int) -> Page:
    """A heading over two columns of small print with cut words, the page's number below."""
    width = (WIDTH - 2 * MARGIN - GUTTER) / 2
    top = HEIGHT - MARGIN - 40
    runs = [Run(MARGIN, HEIGHT - MARGIN - 16, 15, heading), _centred(30, str(number))]
    left, y = MARGIN, top
    for line in _lines_of(paragraphs, width, COLUMN_SIZE, cuts=True):
        if y < MARGIN + 10:
            if left > MARGIN:
                break
            left, y = MARGIN + width + GUTTER, top
        if line:
            runs.append(Run(left, y, COLUMN_SIZE, line))
        y -= COLUMN_SIZE * 1.35
    return Page(tuple(runs))


def framed_page(header: str, footer: str, heading: str, paragraphs: Sequence[str]) -> Page:
    """One column between a header with a rule and a footer, which all pages of a file have in common."""
    top, bottom = HEIGHT - 40, 34.0
    runs = [Run(MARGIN, top, 8, header), Run(MARGIN, HEIGHT - MARGIN - 40, 13, heading)]
    y = HEIGHT - MARGIN - 64
    for line in _lines_of(paragraphs, WIDTH - 2 * MARGIN, SIZE):
        if y < MARGIN + 20:
            break
        if line:
            runs.append(Run(MARGIN, y, SIZE, line))
        y -= LEADING
    runs.append(Run(MARGIN, bottom, 8, footer))
    rule = (MARGIN, top - 6, WIDTH - MARGIN, top - 6)
    return Page(tuple(runs), rules=(rule,))


def table_page(heading: str, columns: Sequence[str], rows: Sequence[Sequence[str]], remark: str) -> Page:
    """A heading, a ruled table whose cells are placed one by one, a remark below it."""
    runs = [Run(MARGIN, HEIGHT - MARGIN - 16, 14, heading)]
    rules = []
    shares = [max(len(row[place]) for row in (columns, *rows)) + 2 for place in range(len(columns))]
    scale = (WIDTH - 2 * MARGIN) / sum(shares)
    y = HEIGHT - MARGIN - 50
    for row in (columns, *rows):
        x = MARGIN
        for cell, share in zip(row, shares, strict=True):
            runs.append(Run(x + 2, y, 9, cell))
            x += share * scale
        rules.append((MARGIN, y - 5, WIDTH - MARGIN, y - 5))
        y -= 20
    for line in wrap(remark, WIDTH - 2 * MARGIN, SIZE):
        runs.append(Run(MARGIN, y - 10, SIZE, line))
        y -= LEADING
    return Page(tuple(runs), rules=tuple(rules))


def scanned_page(rng: random.Random) -> Page:
    """A picture of a page without any text: grey paper with dark strokes where lines would be."""
    pixels = bytearray(rng.choices(range(225, 256), k=_COLUMNS * _ROWS))
    for row in range(14, _ROWS - 14, 4):
        (last,) = rng.choices(range(40, _COLUMNS - 12))
        for column in range(12, last):
            if column % 6:  # words
                pixels[row * _COLUMNS + column] = 40
                pixels[(row + 1) * _COLUMNS + column] = 70
    return Page((), (Bitmap(0, 0, WIDTH, HEIGHT, _COLUMNS, _ROWS, bytes(pixels)),))


def leftwards_page(heading: str, paragraphs: Sequence[str], number: int) -> Page:
    """One column flush right, of a script that runs from right to left."""
    runs = [_flush_right(HEIGHT - MARGIN - 16, 15, heading), _centred(30, str(number))]
    y = HEIGHT - MARGIN - 48
    for line in _lines_of(paragraphs, WIDTH - 2 * MARGIN, 11):
        if y < MARGIN + 10:
            break
        if line:
            runs.append(_flush_right(y, 11, line))
        y -= 16
    return Page(tuple(runs))


def _lines_of(paragraphs: Sequence[str], width: float, size: float, *, cuts: bool = False) -> Iterator[str]:
    """The lines of all paragraphs, an empty one between two."""
    for place, paragraph in enumerate(paragraphs):
        if place:
            yield ""
        yield from wrap(paragraph, width, size, cuts=cuts)


def _flush_right(y: float, size: float, text: str) -> Run:
    return Run(WIDTH - MARGIN - text_width(text, size), y, size, text)


def _centred(y: float, text: str) -> Run:
    return Run((WIDTH - text_width(text, 8)) / 2, y, 8, text)
