"""The items of a JSON list of any length, one at a time, and the value of one JSON text.

The standard library reads each item from a window of the text, so that memory grows with the largest item and
not with the file. Control characters in strings, NaN and large integers are let pass; of equal keys the last
one counts.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import IO, Any, Final

from attrs import define, field, frozen

from lithos.imports.model.texts import decode

#: Characters of one item, and bytes of a line: more than any conversation has.
MOST_BYTES: Final = 32 * 1024 * 1024
#: Bytes that are read at once, at least.
WINDOW: Final = 65_536
#: Characters before the end of the window in which an unfinished value may fail to parse, or a number seem
#: complete.
_NEAR_END: Final = 16
#: Characters in which the next item begins behind a damaged one.
_LONGEST_HEAD: Final = 512

_DECODER: Final = json.JSONDecoder(strict=False)
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_FIRST_KEY: Final = re.compile(r'\{\s{0,64}("[^"\\]{1,200}")\s{0,64}:')


@frozen
class Damaged:
    """An item that cannot be read, and why."""

    reason: str


def read_json(data: bytes) -> Any:
    """The value of a JSON text in any encoding of `texts.decode`. Raises `ValueError` with the reason."""
    try:
        return _DECODER.decode(decode(data))
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def read_items(file: IO[bytes], most: int = MOST_BYTES) -> Iterator[Any]:
    """The items of the list in a file in UTF-8; `Damaged` for each that cannot be read.

    Behind a damaged item the next one is found by the first key that all have. A file of one object has that
    as its only item. An item has at most `most` characters. Raises what reading the file raises.
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
                yield Damaged(f"it is not valid JSON: no comma follows at character {text.here:,}")
            if not text.find_next():
                return


@define
class _Text:
    """A window of the text of a file; `place` is where reading continues."""

    _file: IO[bytes]
    _most: int
    place: int = 0
    _text: str = ""
    _before: int = 0
    _first_key: str = ""
    #: Whether all of the file is read.
    _is_whole: bool = False
    _decoder: codecs.IncrementalDecoder = field(
        factory=lambda: codecs.getincrementaldecoder("utf-8-sig")("replace")
    )

    @property
    def here(self) -> int:
        """The number of characters before the place."""
        return self._before + self.place

    def next(self) -> str:
        """The next character that is not blank; "" at the end."""
        while True:
            self.place = _BLANK.match(self._text, self.place).end()  # type: ignore[union-attr]
            if self.place < len(self._text):
                return self._text[self.place]
            if not self._more():
                return ""

    def pass_comma(self) -> bool:
        """Pass the comma behind an item; False where neither a comma nor the end of the list is there."""
        sign = self.next()
        self.place += sign == ","
        return sign in (",", "]", "")

    def end(self) -> Damaged | None:
        """Pass the end of the list; raises `Damaged` if the text ends before it or continues after it."""
        if not self.next():
            return self._cut()
        self.place += 1
        if not self.next():
            return None
        return Damaged(f"it is not valid JSON: text follows the list at character {self.here:,}")

    def value(self) -> Any:
        """The value at the place, or `Damaged`."""
        while True:
            found, end = self._decode()
            if isinstance(found, Damaged):
                return found
            if (end or len(self._text)) - self.place > self._most:
                return Damaged(f"it has more than {self._most >> 20} MB")
            if end and (end + _NEAR_END < len(self._text) or self._is_whole):
                self._learn_key()
                self.place = end
                return found
            if self._is_whole:
                return self._cut()
            self._more()

    def _decode(self) -> tuple[Any, int]:
        """The value and its end; `Damaged`, or 0 for the end of one that is not all there."""
        try:
            return _DECODER.raw_decode(self._text, self.place)
        except RecursionError:
            return Damaged("it nests too deeply"), 0
        except json.JSONDecodeError as error:
            if len(self._text) - error.pos < _NEAR_END or error.msg.startswith("Unterminated"):
                return None, 0
            return Damaged(f"it is not valid JSON ({error.msg}: character {self._before + error.pos:,})"), 0
        except ValueError as error:  # a number of thousands of digits
            return Damaged(f"it is not valid JSON ({error})"), 0

    def _cut(self) -> Damaged:
        read = self._before + len(self._text)
        return Damaged(f"the export is cut off here: the text ends in the middle (character {read:,})")

    def find_next(self) -> bool:
        """Move to the beginning of the next item after a damaged one; False if there is no other."""
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
        """Read as much again as is held, so that reading an item again costs no more than reading it."""
        data = self._file.read(max(WINDOW, len(self._text) - self.place))
        self._is_whole = not data
        self._text = self._text[self.place :] + self._decoder.decode(data, not data)
        self._before, self.place = self._before + self.place, 0
        return bool(data)
