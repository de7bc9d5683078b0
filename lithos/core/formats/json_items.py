"""A JSON array of any length, item by item: a splitter that is fed bytes, and a reader of one value.

A streaming parser such as ijson was tried and not taken: it builds an item of any size before one can refuse
it, needs memory with the square of the nesting, ends for good at the first damaged item, and refuses what
exports do have (control characters in strings, NaN, integers above 64 bits). Splitting at brackets bounds an
item beforehand, finds the next one behind a damaged one, and leaves `json` to read each.

No single call looks at more than `WINDOW` bytes, but for a string longer than that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from attrs import define, field, frozen

from lithos.core.formats.texts import decode

#: Bytes of one item: more than any conversation has; a larger one is not kept. Reading one takes some six
#: times as much memory where its texts need four bytes a character.
MOST_BYTES: Final = 32 * 1024 * 1024
#: Brackets inside brackets.
MOST_DEPTH: Final = 200
#: Bytes for one call of a regular expression or of `json`.
WINDOW: Final = 65_536
#: Brackets whose kind is remembered; deeper ones are counted.
_REMEMBERED: Final = 1_000
#: The longest first key by which the next item is found behind a damaged one.
_LONGEST_KEY: Final = 200

_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_IN_ITEM: Final = re.compile(rb'(?:[^"{}\[\]]++|' + _STRING + rb")*+", re.DOTALL)
_IN_LIST: Final = re.compile(rb'(?:[^",{}\[\]]++|' + _STRING + rb")*+", re.DOTALL)
_IN_STRING: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_FIRST_KEY: Final = re.compile(rb'\s*\{\s*("[^"\\]{1,200}")\s*:')
_KEY: Final = re.compile(rb"\s*(" + _STRING + rb")\s*:", re.DOTALL)
_SPACE: Final = b" \t\r\n"
_QUOTE, _COMMA = b'",'
_CLOSERS: Final = {b"["[0]: b"]"[0], b"{"[0]: b"}"[0]}
_BACKSLASH: Final = b"\\"[0]
_LIST: Final = b"["[0]


@frozen
class Piece:
    """One item: its number from 0, where it begins and ends in bytes, and its JSON, or why there is none.

    `is_cut` says that the text ends in it.
    """

    index: int
    offset: int
    end: int
    data: bytes | None
    reason: str = ""
    is_cut: bool = False


@define
class ItemSplitter:
    """Splits an array, or the members of an object, that is fed to it in chunks of at most `WINDOW` bytes."""

    most_bytes: int = MOST_BYTES
    #: Whether items have their data; else where they begin and end is all.
    keeps: bool = True
    _closers: bytearray = field(factory=bytearray, init=False)
    _depth: int = field(default=0, init=False)
    _in_string: bool = field(default=False, init=False)
    _is_escaped: bool = field(default=False, init=False)
    _item: bytearray = field(factory=bytearray, init=False)
    _started: int | None = field(default=None, init=False)
    _ended: int = field(default=0, init=False)
    _problem: str = field(default="", init=False)
    _consumed: int = field(default=0, init=False)
    _index: int = field(default=0, init=False)
    _first_key: bytes = field(default=b"", init=False)
    _garbage: int | None = field(default=None, init=False)
    #: What of the chunk stands in `_item` already, or belongs to no item.
    _kept: int = field(default=0, init=False)
    #: The last bytes behind damage, in which the next item may begin; None where all is well.
    _lost: bytes | None = field(default=None, init=False)

    def feed(self, chunk: bytes) -> Iterator[Piece]:
        """The items that end in this chunk; exhaust it before the next call."""
        position = self._kept = 0
        while position < len(chunk):
            if self._is_escaped or self._in_string or self._depth == 0 or self._lost is not None:
                position = self._skip(chunk, position)
                continue
            pattern = _IN_LIST if self._depth == 1 else _IN_ITEM
            position = pattern.match(chunk, position).end()  # type: ignore[union-attr]
            if position < len(chunk):
                yield from self._mark(chunk, position)
                position += 1
        self._keep(chunk, len(chunk))
        self._consumed += len(chunk)

    def _skip(self, chunk: bytes, position: int) -> int:
        """Where the next bracket, comma or quote may stand."""
        if self._is_escaped:
            self._is_escaped = False
            return position + 1
        if self._in_string:
            return self._skip_string(chunk, position)
        position = self._kept = (self._open if self._lost is None else self._find_next)(chunk, position)
        return position

    def _mark(self, chunk: bytes, position: int) -> Iterator[Piece]:
        """A bracket, quote or comma: an item may end at it."""
        byte = chunk[position]
        if byte == _QUOTE:
            self._in_string = True
        elif byte in _CLOSERS:
            self._push(_CLOSERS[byte])
        elif self._depth == 1:
            self._keep(chunk, position)
            self._kept = position + 1
            if byte == _COMMA or self._closers[-1] == byte:
                yield from self._end_item(is_last=byte != _COMMA)
                self._leave(byte)
            else:
                yield self._damage(position)
        elif not self._pop(byte):
            self._keep(chunk, position)
            self._kept = position + 1
            yield self._damage(position)

    def finish(self) -> Iterator[Piece]:
        """What is left at the end of the text."""
        if self._garbage is not None:
            yield Piece(self._index, self._garbage, self._consumed, None, "what stands here is no JSON list")
        if self._depth == 0 or self._lost is not None:
            return
        if self._depth == 1 and not self._in_string and self._started is not None:
            yield from self._end_item(is_last=True)
        begin = self._consumed if self._started is None else self._started
        reason = f"the text ends in the middle (byte {self._consumed:,})"
        yield Piece(self._index, begin, self._consumed, None, reason, is_cut=True)

    def _open(self, chunk: bytes, position: int) -> int:
        """Where the bracket stands with which everything begins; another list may follow behind its end."""
        rest = chunk[position:].lstrip(_SPACE)
        if not rest:
            return len(chunk)
        position = len(chunk) - len(rest)
        if rest[0] not in _CLOSERS:
            self._garbage = self._consumed + position if self._garbage is None else self._garbage
            return len(chunk)
        self._push(_CLOSERS[rest[0]])
        return position + 1

    def _push(self, closer: int) -> None:
        if self._depth < _REMEMBERED:
            self._closers.append(closer)
        self._depth += 1
        if self._depth > MOST_DEPTH and not self._problem:
            self._problem = f"it nests deeper than {MOST_DEPTH} levels"

    def _pop(self, closer: int) -> bool:
        self._depth -= 1
        return self._depth >= _REMEMBERED or self._closers.pop() == closer

    def _leave(self, byte: int) -> None:
        if byte != _COMMA:
            self._depth = 0
            self._closers.clear()

    def _skip_string(self, chunk: bytes, position: int) -> int:
        position = _IN_STRING.match(chunk, position).end()  # type: ignore[union-attr]
        if position < len(chunk):
            if chunk[position] == _BACKSLASH:  # the escaped character is in the next chunk
                self._is_escaped = True
            else:
                self._in_string = False
            position += 1
        return position

    def _keep(self, chunk: bytes, end: int) -> None:
        """Add the chunk up to `end` to the item, behind what stands there already."""
        start = self._kept
        if self._depth == 0 or start >= end or self._lost is not None:
            return
        if self._started is None:
            blank = end - start - len(chunk[start:end].lstrip(_SPACE))
            if blank == end - start:
                return
            start += blank
            self._started = self._consumed + start
        if not self._problem and len(self._item) + end - start > self.most_bytes:
            self._problem = f"it has more than {self.most_bytes // (1024 * 1024)} MB"
        if self._problem:
            self._item.clear()
        elif self.keeps:
            self._item += chunk[start:end]
        self._ended = self._consumed + end

    def _end_item(self, *, is_last: bool) -> Iterator[Piece]:
        started, self._started = self._started, None
        data, self._item = bytes(self._item), bytearray()
        problem, self._problem = self._problem, ""
        if started is None:
            if not is_last:
                where = self._consumed
                yield Piece(self._index, where, where, None, "nothing stands between two commas")
                self._index += 1
            return
        if not self._first_key and (key := _FIRST_KEY.match(data[: 2 * _LONGEST_KEY])):
            self._first_key = key[1]
        yield Piece(self._index, started, self._ended, None if problem else data, problem)
        self._index += 1

    def _damage(self, position: int) -> Piece:
        """Give the item up; the next one begins where an object has the first key that the first one had."""
        begin = self._consumed + position
        started = begin if self._started is None else self._started
        if not self._first_key and (key := _FIRST_KEY.match(bytes(self._item[: 2 * _LONGEST_KEY]))):
            self._first_key = key[1]
        self._item, self._started, self._problem = bytearray(), None, ""
        self._lost = b""
        self._index += 1
        return Piece(self._index - 1, started, begin, None, f"its brackets do not match (byte {begin:,})")

    def _find_next(self, chunk: bytes, position: int) -> int:
        """Where the next item begins in the chunk, or its end; then all is well again."""
        assert self._lost is not None
        if not self._first_key:
            return len(chunk)
        before = self._lost
        text = before + chunk[position:]
        found = re.search(
            rb"\}\s{0,64},\s{0,64}\{\s{0,64}" + re.escape(self._first_key) + rb"\s{0,64}:", text
        )
        if found is None:
            self._lost = text[-2 * _LONGEST_KEY - 256 :]
            return len(chunk)
        begin = text.index(b"{", found.start())
        self._lost, self._in_string, self._depth = None, False, 1
        del self._closers[1:]
        self._started = self._consumed + position + begin - len(before)
        kept = begin - len(before)
        if kept < 0:  # the item begins in the chunk before
            self._item += text[begin : len(before)]
            self._replay(text[begin : len(before)])
            return position
        self._started = None
        return position + kept

    def _replay(self, data: bytes) -> None:
        """Count the brackets of the few bytes of an item that stand in the chunk before."""
        position = 0
        while position < len(data):
            if self._in_string:
                position = self._skip_string(data, position)
                continue
            position = _IN_ITEM.match(data, position).end()  # type: ignore[union-attr]
            if position < len(data):
                self._in_string = data[position] == _QUOTE
                if data[position] in _CLOSERS:
                    self._push(_CLOSERS[data[position]])
                position += 1


def split_whole(data: bytes, start: int, end: int) -> Iterator[Piece]:
    """The items of an array or the members of an object in `data[start:end]`, without their data."""
    splitter = ItemSplitter(keeps=False, most_bytes=end - start)
    for at in range(start, end, WINDOW):
        yield from splitter.feed(data[at : min(at + WINDOW, end)])
    yield from splitter.finish()


def read_json(data: bytes) -> Any:
    """The value of a JSON text in any encoding of `texts.decode`; a large one is read piece by piece.

    Control characters in strings, NaN and large integers are let pass; of equal keys the last one counts.
    Raises `ValueError` with the reason.
    """
    return _read(data, 0, len(data))


def _read(data: bytes, start: int, end: int) -> Any:
    """The value in `data[start:end]`. Raises `ValueError`."""
    while start < end and data[start] in _SPACE:
        start += 1
    if end - start > WINDOW and data[start] in _CLOSERS:
        return _read_large(data, start, end)
    try:
        return json.loads(decode(data[start:end]), strict=False)
    except RecursionError:
        raise ValueError(f"it nests deeper than {MOST_DEPTH} levels") from None


def _read_large(data: bytes, start: int, end: int) -> Any:
    """Raises `ValueError`."""
    is_list = data[start] == _LIST
    items: list[Any] = []
    members: dict[str, Any] = {}
    for piece in split_whole(data, start, end):
        begin, stop = start + piece.offset, start + piece.end
        if piece.reason:
            raise ValueError(piece.reason)
        if is_list:
            items.append(_read(data, begin, stop))
        elif key := _KEY.match(data, begin, stop):
            members[str(json.loads(decode(key[1]), strict=False))] = _read(data, key.end(), stop)
        else:
            raise ValueError(f"a key is missing (byte {begin:,})")
    return items if is_list else members
