"""Parts of a file with their places and texts, and cleaning of text from foreign files."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from lithos.text.words.analysis import normalise

#: Maximum length of a place in characters. Ids of cards and elements have about 20.
LONGEST_PLACE: Final = 200
#: All line endings of other programs.
_BREAKS: Final = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
#: A hyphen before a line break, or another character in its role: soft hyphens, and two that PDF libraries
#: use.
_HYPHENATED: Final = re.compile("(?<=[^\\W\\d_])[-\u2010\u00ad\x02\ufffe][ \t]*\n[ \t]*([^\\W\\d_])")
_JOINED: Final = re.compile("[\x02\ufffe](.?)")
#: Control characters except newlines, and other characters that are always invisible.
_DROPPED: Final = dict.fromkeys(
    (*range(9), *range(11, 32), *range(0x7F, 0xA0), 0xAD, 0x200B, 0xFEFF, 0xFFFE, 0xFFFF)
) | {9: " "}


class NotExtractable(Exception):
    """A file has no readable text, or no further text from some place on.

    The message gives the reason, as a part of a sentence.
    """


@frozen
class FilePart:
    """Text at one place: a page number, the id of a card or element, or the number of the first line."""

    place: str
    text: str
    #: Page of a PDF file, from 1.
    page: int | None = None


def clean(text: str) -> str:
    """Return text in its stored form: NFC, newline line ends, and hyphenated words rejoined.

    Control characters and surrounding blanks are removed, and lone surrogates are replaced.
    """
    if not text.isprintable():
        text = _printable(text)
    return normalise("NFC", text).strip()


def _printable(text: str) -> str:
    if not text.isascii():  # join surrogate pairs that arrived as two characters, and replace lone surrogates
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = _BREAKS.sub("\n", text)
    text = _HYPHENATED.sub(lambda found: found[1] if found[1].islower() else f"-\n{found[1]}", text)
    # The remaining characters are places where a library has already joined two lines.
    text = _JOINED.sub(lambda found: found[1] if found[1].islower() else f"-{found[1]}", text)
    return text.translate(_DROPPED)


class Places:
    """Places of one file. Each place is unique, even if the file repeats an id."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def name(self, wanted: object, otherwise: str) -> str:
        """Return a place with this id, corrected if it is invalid.

        A repeated id gets a number.
        """
        place = wanted if isinstance(wanted, str) else ""
        place = clean(place[: 2 * LONGEST_PLACE])[:LONGEST_PLACE] or otherwise
        count = self._used[place] = self._used.get(place, 0) + 1
        return place if count == 1 else f"{place} ({count})"
