"""What of a note is never shown in an excerpt: its comments, and text that most notes of its folder share.

A block is a paragraph outside comments and fenced code: lines up to a blank one. Blocks are alike when they
read alike: without markup, marks, case, and whatever their numbers are. Only the first and last blocks of a
note count, since frames stand around notes (footers, navigation, licences). One of less than four words is a
value, which says something of its note although others have it too.

Hidden characters are replaced by `HIDDEN`, so that places stay what they are; `without_hidden` drops them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final
from zlib import crc32

from lithos.core.text.analysis import fold, words
from lithos.core.text.markdown import code_fences, comments, strip_markup
from lithos.core.text.pieces import matches_in_lines

#: Stands for each hidden character: no text that is read as a note has it for anything.
HIDDEN: Final = "\x00"
#: Blocks that count at either end of a note, and characters there that they are looked for in.
COUNTED: Final = 6
REACH: Final = 8_192
#: Words of a block that counts, at least; characters of one, at most.
LEAST_WORDS: Final = 4
LONGEST_BLOCK: Final = 2_000
#: Notes that tell what a folder shares, at least.
LEAST_NOTES: Final = 8

_LINE: Final = re.compile(r"[^\n]*\n?")
_NUMBER: Final = re.compile(r"\d+")
_BLANK_LINES: Final = re.compile(r"\n(?:[^\S\n]*\n){2,}")


def shared_blocks(contents: Sequence[str]) -> frozenset[int]:
    """The hashes of the blocks that more than half of these notes have; none of fewer than `LEAST_NOTES`."""
    if len(contents) < LEAST_NOTES:
        return frozenset()
    counted = Counter(each for content in contents for each in _hashes(content))
    return frozenset(each for each, count in counted.items() if 2 * count > len(contents))


def hide(content: str, shared: frozenset[int] = frozenset()) -> str:
    """The content with its comments and the blocks that others share hidden; of equal length, in linear time.

    A note of nothing but shared blocks shows them: they are no frame.
    """
    shown = content
    if "%%" in content or "<!--" in content:
        shown = _mask(content, comments(content))
    if not shared:
        return shown
    spans = [span for span in _ends(shown) if _hash(shown[slice(*span)]) in shared]
    framed = _mask(shown, spans)
    return framed if any(map(_says_something, framed.splitlines())) else shown


def without_hidden(text: str) -> str:
    """A short text without what is hidden, and without the blank lines around it."""
    return _BLANK_LINES.sub("\n\n", text.replace(HIDDEN, "")) if HIDDEN in text else text


def _hashes(content: str) -> set[int]:
    """The hashes (32 bits each) of the blocks of a note that count."""
    shown = hide(content)
    return {_hash(shown[start:end]) for start, end in _ends(shown)} - {0}


def _ends(shown: str) -> list[tuple[int, int]]:
    """Start and end of the first and the last blocks; comments are hidden already."""
    if len(shown) <= 2 * REACH:
        spans = list(_blocks(shown, 0, len(shown)))
        first, last = spans[:COUNTED], spans[COUNTED:][-COUNTED:]
    else:
        first = list(_blocks(shown, 0, REACH))[:COUNTED]
        last = list(_blocks(shown, shown.rfind("\n", 0, len(shown) - REACH) + 1, len(shown)))[-COUNTED:]
    return [(start, end) for start, end in [*first, *last] if end - start <= LONGEST_BLOCK]


def _blocks(shown: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Start and end of each block of a part of a text."""
    part = shown[begin:end]
    fences = list(code_fences(part))[::-1] if "```" in part or "~~~" in part else []
    first = last = -1
    for line in matches_in_lines(_LINE, part, 0):
        while fences and fences[-1][1] <= line.start():
            fences.pop()
        in_code = bool(fences) and fences[-1][0] < line.end()
        if in_code or not line[0].strip("\x00 \t\r\n"):
            if first >= 0:
                yield begin + first, begin + last
            first = -1
            continue
        first = line.start() if first < 0 else first
        last = line.start() + len(line[0].rstrip("\r\n"))
    if first >= 0:
        yield begin + first, begin + last


def _hash(block: str) -> int:
    """What a block reads as; 0 where it is too short to count."""
    said = [_NUMBER.sub("0", word) for _, word in words(fold(strip_markup(block.replace(HIDDEN, ""))))]
    return crc32(" ".join(said).encode("utf-8", "surrogatepass")) if len(said) >= LEAST_WORDS else 0


def _says_something(line: str) -> bool:
    """Whether a line that is no heading has a letter or a digit."""
    return not line.lstrip().startswith("#") and any(map(str.isalnum, line))


def _mask(text: str, spans: Sequence[tuple[int, int]]) -> str:
    parts: list[str] = []
    done = 0
    for start, end in spans:
        parts += (text[done:start], HIDDEN * (end - start))
        done = end
    return "".join([*parts, text[done:]]) if parts else text
