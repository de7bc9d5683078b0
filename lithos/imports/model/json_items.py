"""Reader for JSON: the items of a list of any length, one at a time, or the value of one text.

The standard library parses each item from a window of the text, so that memory use depends on the largest
item and not on the file. Control characters in strings, NaN and large integers are accepted. If keys repeat,
the last one is used.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, Any, Final

from attrs import define, field, frozen

from lithos.imports.model.texts import decode

#: Maximum characters of an item and bytes of a line, more than any conversation has.
MOST_BYTES: Final = 32 * 1024 * 1024
#: Minimum number of bytes read at once.
WINDOW: Final = 65_536
#: Characters before the window's end where an unfinished value may fail to parse or a cut number look
#: complete.
_NEAR_END: Final = 16
#: Maximum characters of the text that identifies the next item after a damaged item.
_LONGEST_HEAD: Final = 512

_DECODER: Final = json.JSONDecoder(strict=False)
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_FIRST_KEY: Final = re.compile(r'\{\s{0,64}("[^"\\]{1,200}")\s{0,64}:')


@frozen
class Damaged:
    """An item that cannot be read, with the reason. It is returned and never raised."""

    reason: str


def read_json(data: bytes) -> Any:
    """Return the value of a JSON text in any encoding that `texts.decode` knows. Raises `ValueError`."""
    try:
        return _DECODER.decode(decode(data))
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def read_items(file: IO[bytes], most: int = MOST_BYTES) -> Iterator[Any]:
    """Yield the items of the JSON list in a UTF-8 file, and `Damaged` for each unreadable item.

    After a damaged item, the next item is found by the first key that all items have. A file with a single
    object yields that object. An item has at most `most` characters. Raises read errors of the file.
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
    """Window on the text of a file. `place` is the position where parsing continues."""

    _file: IO[bytes]
    _most: int
    place: int = 0
    _text: str = ""
    _before: int = 0
    _first_key: str = ""
    #: Whether the file has been read to its end.
    _is_whole: bool = False
    _decoder: codecs.IncrementalDecoder = field(
        factory=lambda: codecs.getincrementaldecoder("utf-8-sig")("replace")
    )

    @property
    def here(self) -> int:
        """Return the number of characters before `place`."""
        return self._before + self.place

    def next(self) -> str:
        """Return the next character that is not blank, or "" at the end."""
        while True:
            self.place = _BLANK.match(self._text, self.place).end()  # type: ignore[union-attr]
            if self.place < len(self._text):
                return self._text[self.place]
            if not self._more():
                return ""

    def pass_comma(self) -> bool:
        """Skip the comma after an item. Return False if neither a comma nor the end of the list follows."""
        sign = self.next()
        self.place += sign == ","
        return sign in (",", "]", "")

    def end(self) -> Damaged | None:
        """Skip the end of the list. Return `Damaged` if the text ends before or continues after it."""
        if not self.next():
            return self._cut()
        self.place += 1
        if not self.next():
            return None
        return Damaged(f"the file is not valid JSON: text follows the list at character {self.here:,}")

    def value(self) -> Any:
        """Return the value at `place`, or `Damaged`."""
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

        An end of 0 means that the value is `Damaged`, or None because it is incomplete.
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
        """Move to the next item after a damaged item. Return False if no item follows."""
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
        """Read as many characters again as the window holds, so that repeated parsing stays cheap."""
        data = self._file.read(max(WINDOW, len(self._text) - self.place))
        self._is_whole = not data
        self._text = self._text[self.place :] + self._decoder.decode(data, not data)
        self._before, self.place = self._before + self.place, 0
        return bool(data)
