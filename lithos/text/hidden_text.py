"""Parts of a note that excerpts never show: comments, and text that most notes of its folder share.

A block is a paragraph outside comments, or a fenced code block. Two blocks are alike if they are equal apart
from markup, punctuation and case. Numbers and the words of the note's folder are ignored, because templates
fill them in. Only the first and last blocks of a note are compared, because shared text (footers, navigation,
licences) is at the beginning or end of notes. Blocks with fewer than four words are not compared: such a
block is usually a value that describes its note, even if other notes have the same value.

Hidden characters are replaced by `HIDDEN`, so positions do not change. `without_hidden` removes them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final
from zlib import crc32

from attrs import frozen

from lithos.text.markdown import code_fences, comments, strip_markup
from lithos.text.pieces import matches_in_lines
from lithos.text.words.analysis import fold, words

#: Replacement for each hidden character. Notes do not contain this character otherwise.
HIDDEN: Final = "\x00"
#: Maximum number of blocks that are compared at each end of a note, and number of characters at each end in
#: which the blocks are searched for.
COUNTED: Final = 6
REACH: Final = 8_192
#: Minimum number of words in a block that is compared, and its maximum length in characters.
LEAST_WORDS: Final = 4
LONGEST_BLOCK: Final = 2_000
#: Minimum number of notes in a folder before shared text can be detected.
LEAST_NOTES: Final = 8

#: Replacement for numbers and for words from the note's folder path.
_FILLED: Final = "0"
_LINE: Final = re.compile(r"[^\n]*\n?")
_NUMBER: Final = re.compile(r"\d+")
_BLANK_LINES: Final = re.compile(r"\n(?:[^\S\n]*\n){2,}")


@frozen
class Frame:
    """Text that most notes of a folder share, as hashes of blocks.

    `names` are the words in the path of the note's folder.
    """

    shared: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()

    def has(self, block: str) -> bool:
        """Return whether most notes of the folder contain this block."""
        return not self.shared.isdisjoint(_hashes_of(block, self.names))


NO_FRAME: Final = Frame()


def names_in(folder: str) -> frozenset[str]:
    """Return the words of a folder path, in the form in which blocks contain them."""
    return frozenset(word for _, word in words(fold(folder)))


def shared_blocks(notes: Sequence[tuple[str, str]]) -> frozenset[int]:
    """Return the hashes of blocks that more than half of these notes contain.

    Each note is a pair of its folder and its content.

    For fewer than `LEAST_NOTES` notes the result is empty.
    """
    if len(notes) < LEAST_NOTES:
        return frozenset()
    counted = Counter(each for folder, content in notes for each in _hashes(content, names_in(folder)))
    return frozenset(each for each, count in counted.items() if 2 * count > len(notes))


def hide(content: str, frame: Frame = NO_FRAME) -> str:
    """Return the content with comments and shared blocks hidden.

    The length does not change. Takes linear time.

    If a note consists only of shared blocks, the blocks that differ only in words of the folder path are
    shown. If there are no such blocks, all blocks are shown.
    """
    shown = content
    if "%%" in content or "<!--" in content:
        shown = _mask(content, comments(content))
    ends = _ends(shown) if frame.shared else []
    for each in (frame, Frame(frame.shared)) if ends else ():
        framed = _mask(shown, [span for span in ends if each.has(shown[slice(*span)])])
        if any(map(_says_something, framed.splitlines())):
            return framed
    return shown


def without_hidden(text: str) -> str:
    """Return a short text without hidden characters, and without the blank lines around it."""
    return _BLANK_LINES.sub("\n\n", text.replace(HIDDEN, "")) if HIDDEN in text else text


def _hashes(content: str, names: frozenset[str]) -> set[int]:
    """Return the 32-bit hashes of the note's compared blocks."""
    shown = hide(content)
    return {each for start, end in _ends(shown) for each in _hashes_of(shown[start:end], names)}


def _ends(shown: str) -> list[tuple[int, int]]:
    """Return the positions of the first and last blocks. Comments must already be hidden."""
    if len(shown) <= 2 * REACH:
        spans = list(_blocks(shown, 0, len(shown)))
        first, last = spans[:COUNTED], spans[COUNTED:][-COUNTED:]
    else:
        first = list(_blocks(shown, 0, REACH))[:COUNTED]
        last = list(_blocks(shown, shown.rfind("\n", 0, len(shown) - REACH) + 1, len(shown)))[-COUNTED:]
    return [(start, end) for start, end in [*first, *last] if end - start <= LONGEST_BLOCK]


def _blocks(shown: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each block in a part of a text."""
    part = shown[begin:end]
    fences = list(code_fences(part)) if "```" in part or "~~~" in part else []
    done = 0
    for start, stop in fences:
        yield from _paragraphs(part, begin, done, start)
        yield begin + start, begin + stop
        done = stop
    yield from _paragraphs(part, begin, done, len(part))


def _paragraphs(part: str, begin: int, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of the paragraphs of `part[start:stop]`. `begin` is added to each position."""
    first = last = -1
    for line in matches_in_lines(_LINE, part[start:stop], 0):
        if not line[0].strip("\x00 \t\r\n"):
            if first >= 0:
                yield begin + first, begin + last
            first = -1
            continue
        first = start + line.start() if first < 0 else first
        last = start + line.start() + len(line[0].rstrip("\r\n"))
    if first >= 0:
        yield begin + first, begin + last


def _hashes_of(block: str, names: frozenset[str]) -> set[int]:
    """Return the hashes of a block with and without the words of `names`.

    If the block is too short, return an empty set.
    """
    said = [_NUMBER.sub(_FILLED, word) for _, word in words(fold(strip_markup(block.replace(HIDDEN, ""))))]
    filled = [_FILLED if word in names else word for word in said]
    # Several replaced words in a row count as one, because folder paths contain different numbers of names.
    short = [word for word, _ in groupby(filled)]
    return {
        crc32(" ".join(some).encode("utf-8", "surrogatepass"))
        for some in (said, short)
        if sum(word != _FILLED for word in some) >= LEAST_WORDS
    }


def _says_something(line: str) -> bool:
    """Return whether a line contains a letter or a digit and is not a heading."""
    return not line.lstrip().startswith("#") and any(map(str.isalnum, line))


def _mask(text: str, spans: Sequence[tuple[int, int]]) -> str:
    parts: list[str] = []
    done = 0
    for start, end in spans:
        parts += (text[done:start], HIDDEN * (end - start))
        done = end
    return "".join([*parts, text[done:]]) if parts else text
