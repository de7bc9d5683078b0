"""Parts of a file with their texts and places, and the cleaning of text from other programs."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from lithos.kernel.values.graphemes import beginning
from lithos.text.words.analysis import normalise

#: Maximum length of a place in characters. The usual ids of cards and elements have about 20 characters.
LONGEST_PLACE: Final = 200
#: All line breaks that other programs use.
_BREAKS: Final = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
#: A hyphen or similar character before a line break. Similar characters are soft hyphens and two characters
#: that PDF libraries use.
_HYPHENATED: Final = re.compile("(?<=[^\\W\\d_])[-\u2010\u00ad\x02\ufffe][ \t]*\n[ \t]*([^\\W\\d_])")
_JOINED: Final = re.compile("[\x02\ufffe](.?)")
#: Control characters except newlines, and other characters that are always invisible.
_DROPPED: Final = dict.fromkeys(
    (*range(9), *range(11, 32), *range(0x7F, 0xA0), 0xAD, 0x200B, 0xFEFF, 0xFFFE, 0xFFFF)
) | {9: " "}


class NotExtractable(Exception):
    """Error: a file has no readable text, or its text cannot be read further.

    The message is the reason, as part of a sentence.
    """


@frozen
class FilePart:
    """Text at one place of a file. A place is a page number, an id of a card or element, or a line number."""

    place: str
    text: str
    #: Page of a PDF file, counted from 1.
    page: int | None = None


def clean(text: str) -> str:
    """Return text in the form in which it is stored: NFC, newlines as line ends, split words rejoined.

    Control characters and surrounding white space are removed. Lone surrogates are replaced.
    """
    if not text.isprintable():
        text = _printable(text)
    return normalise("NFC", text).strip()


def _printable(text: str) -> str:
    if not text.isascii():  # join surrogate pairs that arrived as two characters, and replace lone surrogates
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    text = _BREAKS.sub("\n", text)
    text = _HYPHENATED.sub(lambda found: found[1] if found[1].islower() else f"-\n{found[1]}", text)
    # The remaining marks are places at which a library has already joined two lines.
    text = _JOINED.sub(lambda found: found[1] if found[1].islower() else f"-{found[1]}", text)
    return text.translate(_DROPPED)


class Places:
    """The places of one file. Each place is unique, even if the file uses an id twice."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def name(self, wanted: object, otherwise: str) -> str:
        """Return a unique place for this id. An invalid id is corrected.

        If the id is already used, a number is added.
        """
        place = wanted if isinstance(wanted, str) else ""
        place = beginning(clean(place[: 2 * LONGEST_PLACE]), LONGEST_PLACE) or otherwise
        count = self._used[place] = self._used.get(place, 0) + 1
        return place if count == 1 else f"{place} ({count})"
