"""A part of a file: a place with its text, and how text from foreign files is cleaned."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from lithos.text.words.analysis import normalise

#: Characters of a place: ids of cards and elements have some 20.
LONGEST_PLACE: Final = 200
#: All that ends a line somewhere.
_BREAKS: Final = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
#: A hyphen before a line break, and characters used for one: soft hyphens, and two that PDF libraries use.
_HYPHENATED: Final = re.compile("(?<=[^\\W\\d_])[-\u2010\u00ad\x02\ufffe][ \t]*\n[ \t]*([^\\W\\d_])")
_JOINED: Final = re.compile("[\x02\ufffe](.?)")
#: Control characters but newlines, and other characters that are always invisible.
_DROPPED: Final = dict.fromkeys(
    (*range(9), *range(11, 32), *range(0x7F, 0xA0), 0xAD, 0x200B, 0xFEFF, 0xFFFE, 0xFFFF)
) | {9: " "}


class NotExtractable(Exception):
    """A file has no readable text, or none from here on;

    the message gives the reason, as a part of a sentence.
    """


@frozen
class FilePart:
    """Text at one place: a page's number, the id of a card or element, or the number of the first line."""

    place: str
    text: str
    #: Of a PDF, from 1.
    page: int | None = None


def clean(text: str) -> str:
    """Return text in its stored form: NFC, lines ended by newlines, words rejoined that a line end had cut.

    Without control characters, lone surrogates and blanks at its ends.
    """
    if not text.isprintable():
        text = _printable(text)
    return normalise("NFC", text).strip()


def _printable(text: str) -> str:
    if not text.isascii():  # halves of a pair that came one by one are joined, single ones replaced
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = _BREAKS.sub("\n", text)
    text = _HYPHENATED.sub(lambda found: found[1] if found[1].islower() else f"-\n{found[1]}", text)
    # The remaining characters of this kind were where a library has joined the lines itself.
    text = _JOINED.sub(lambda found: found[1] if found[1].islower() else f"-{found[1]}", text)
    return text.translate(_DROPPED)


class Places:
    """Places of one file: each is named once, however often the file uses an id."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def name(self, wanted: object, otherwise: str) -> str:
        """Return a place with this id, or with a corrected one if it is invalid;

        a second place with the same id is numbered.
        """
        place = wanted if isinstance(wanted, str) else ""
        place = clean(place[: 2 * LONGEST_PLACE])[:LONGEST_PLACE] or otherwise
        count = self._used[place] = self._used.get(place, 0) + 1
        return place if count == 1 else f"{place} ({count})"
