"""Reader for JSON: the items of a list of any length, one at a time, or the value of a short text.

The standard library parses each item in a window of the text, so memory use depends on the largest item and
not on the file. Control characters in strings, NaN and large integers are accepted. If a key is repeated, its
last value counts.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, Any, Final

from attrs import define, field, frozen

from lithos.imports.model.texts import decode

#: Maximum number of characters in an item, and of bytes in a line. All real conversations are smaller.
MOST_BYTES: Final = 32 * 1024 * 1024
#: Minimum number of bytes to read at once.
WINDOW: Final = 65_536
#: Number of characters before the end of the window in which parsing is not reliable: an unfinished value may
#: fail, and a truncated number may look complete.
_NEAR_END: Final = 16
#: Maximum number of characters that identify the item after a damaged item.
_LONGEST_HEAD: Final = 512

_DECODER: Final = json.JSONDecoder(strict=False)
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_FIRST_KEY: Final = re.compile(r'\{\s{0,64}("[^"\\]{1,200}")\s{0,64}:')


@frozen
class Damaged:
    """An unreadable item with the reason. It is returned and never raised."""

    reason: str


def read_json(data: bytes) -> Any:
    """Return the value of a JSON text in any encoding that `texts.decode` supports. Raises `ValueError`."""
    try:
        return _DECODER.decode(decode(data))
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def read_items(file: IO[bytes], most: int = MOST_BYTES) -> Iterator[Any]:
    """Yield the items of a JSON list in a UTF-8 file. Unreadable items are yielded as `Damaged`.

    After a damaged item, reading continues at the next object with the same first key. If the file is a
    single object, that object is yielded. An item has at most `most` characters. Raises read errors of the
    file.
    """
    text = _Text(file, most)
    if text.next() != "[":
        if text.next():
            yield text.value()
        return
    text.place += 1
    while True:
        sign = text.next()
        is_end = sign in ("", "]")
        found = text.end() if is_end else text.value()
        if is_end and found is None:
            return
        yield found
        if isinstance(found, Damaged) or not text.pass_comma():
            if not isinstance(found, Damaged):
                yield Damaged(f"the list is not valid JSON: no comma follows at character {text.here:,}")
            if not text.find_next():
                return


@define
class _Text:
    """A window on the text of a file. Parsing continues at position `place`."""

    _file: IO[bytes]
    _most: int
    place: int = 0
    _text: str = ""
    _before: int = 0
    _first_key: str = ""
    #: True if the file has been read to its end.
    _is_whole: bool = False
    _decoder: codecs.IncrementalDecoder = field(
        factory=lambda: codecs.getincrementaldecoder("utf-8-sig")("replace")
    )

    @property
    def here(self) -> int:
        """Return the number of characters before `place` in the file."""
        return self._before + self.place

    def next(self) -> str:
        """Return the next character that is not white space, or "" at the end of the text."""
        while True:
            self.place = _BLANK.match(self._text, self.place).end()  # type: ignore[union-attr]
            if self.place < len(self._text):
                return self._text[self.place]
            if not self._more():
                return ""

    def pass_comma(self) -> bool:
        """Skip the comma after an item.

        Return False if another character than a comma or the list's end follows.
        """
        sign = self.next()
        self.place += sign == ","
        return sign in (",", "]", "")

    def end(self) -> Damaged | None:
        """Skip the end of the list. Return `Damaged` if the list is not closed or if more text follows."""
        if not self.next():
            return self._cut()
        self.place += 1
        if not self.next():
            return None
        return Damaged(f"the file is not valid JSON: text follows the list at character {self.here:,}")

    def value(self) -> Any:
        """Return the value at `place`, or `Damaged` if it cannot be read."""
        while True:
            found, end = self._decode()
            if isinstance(found, Damaged):
                return found
            if (end or len(self._text)) - self.place > self._most:
                return Damaged(f"the item has more than {self._most >> 20} MB")
            if end and (end + _NEAR_END < len(self._text) or self._is_whole):
                self._learn_key()
                self.place = end
                return found
            if self._is_whole:
                return self._cut()
            self._more()

    def _decode(self) -> tuple[Any, int]:
        """Return the value and its end position.

        If the end is 0, the value is `Damaged`, or None because it is incomplete.
        """
        try:
            return _DECODER.raw_decode(self._text, self.place)
        except RecursionError:
            return Damaged("the JSON is nested too deeply"), 0
        except json.JSONDecodeError as error:
            if len(self._text) - error.pos < _NEAR_END or error.msg.startswith("Unterminated"):
                return None, 0
            return Damaged(
                f"the item is not valid JSON ({error.msg}: character {self._before + error.pos:,})"
            ), 0
        except ValueError as error:  # an integer with thousands of digits
            return Damaged(f"the item is not valid JSON ({error})"), 0

    def _cut(self) -> Damaged:
        read = self._before + len(self._text)
        return Damaged(
            f"the export is truncated: the text ends in the middle of an item (character {read:,})"
        )

    def find_next(self) -> bool:
        """Move to the item after a damaged item. Return False if there is no such item."""
        self._learn_key()
        if not self._first_key:
            return False
        head = re.compile(r"\}\s{0,64},\s{0,64}\{\s{0,64}" + re.escape(self._first_key) + r"\s{0,64}:")
        while (found := head.search(self._text, self.place)) is None:
            self.place = max(self.place, len(self._text) - _LONGEST_HEAD)
            if not self._more():
                return False
        self.place = self._text.index("{", found.start())
        return True

    def _learn_key(self) -> None:
        if not self._first_key and (key := _FIRST_KEY.match(self._text, self.place)):
            self._first_key = key[1]

    def _more(self) -> bool:
        """Double the size of the window, which limits the cost of repeated parsing.

        Return False at the end of the file.
        """
        data = self._file.read(max(WINDOW, len(self._text) - self.place))
        self._is_whole = not data
        self._text = self._text[self.place :] + self._decoder.decode(data, not data)
        self._before, self.place = self._before + self.place, 0
        return bool(data)
