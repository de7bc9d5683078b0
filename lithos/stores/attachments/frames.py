"""What the process that reads files and its server tell each other over their socket.

A frame is a sign, a length and so many bytes. Its fields are numbers and UTF-8, nothing that nests: what a
process says that a hostile file has taken over is read as cautiously as the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from attrs import frozen

from lithos.core.attachments.kinds import MOST_TEXT, Kind
from lithos.core.attachments.parts import LONGEST_PLACE, Part

_HEAD: Final = struct.Struct(">cI")
_PART: Final = struct.Struct(">IH")
_PAGE: Final = struct.Struct(">I")
_ASKED: Final = struct.Struct(">cIIB")
#: Bytes of a frame: one part with all the text there may be, or the picture of a page.
MOST_FRAME: Final = 32 * 1024 * 1024
#: Bytes of a request: a file name has 255.
MOST_REQUEST: Final = 2_048
#: Bytes of a reason.
MOST_REASON: Final = 500
_DIGEST: Final = 64
#: Exit status of a process that has no memory left.
OUT_OF_MEMORY: Final = 86

State: TypeAlias = Literal["whole", "cut", "failed", "unchanged", "missing"]
_STATES: Final[tuple[State, ...]] = ("whole", "cut", "failed", "unchanged", "missing")
_KINDS: Final[tuple[Kind, ...]] = ("pdf", "canvas", "drawing", "text", "html")


class Garbage(Exception):
    """What came over the socket is no frame that may come."""


@frozen
class Extract:
    """Request: the text of a file, unless its bytes have the `known` digest ("": none is known)."""

    kind: Kind
    name: str
    known: str


@frozen
class Draw:
    """Request: a picture of a page, from 1, so many pixels wide."""

    page: int
    width: int


@frozen
class Digest:
    """The SHA-256 of the file's bytes, in hexadecimal digits."""

    value: str


@frozen
class PageBegun:
    """A page is about to be read: from now on its time counts."""

    page: int


@frozen
class Picture:
    """A page as PNG."""

    data: bytes


@frozen
class End:
    """The answer is complete; why there is not more of it."""

    state: State
    reason: str = ""


Request: TypeAlias = Extract | Draw
Answer: TypeAlias = Digest | PageBegun | Part | Picture | End


def pack_request(request: Request) -> bytes:
    """A request in one piece, which goes with the descriptor of its file."""
    if isinstance(request, Draw):
        return _framed(b"r", _ASKED.pack(b"d", request.page, request.width, 0))
    asked = _ASKED.pack(b"x", 0, len(request.known), _KINDS.index(request.kind))
    name = request.name.encode("utf-8", "replace")[:1_024]
    return _framed(b"r", asked + request.known.encode() + name)


def unpack_request(body: bytes) -> Request:
    """The request of a frame's body."""
    sign, first, second, kind = _ASKED.unpack_from(body)
    if sign == b"d":
        return Draw(first, second)
    rest = body[_ASKED.size :]
    return Extract(_KINDS[kind], rest[second:].decode("utf-8", "replace"), rest[:second].decode())


def request_length(head: bytes) -> int:
    """Bytes of the body behind a request's head."""
    return int(_HEAD.unpack(head)[1])


#: Bytes of a head.
HEAD: Final = _HEAD.size


def pack_answer(answer: Answer) -> bytes:
    """One frame of an answer."""
    match answer:
        case Part(place, text, page):
            named = place.encode()
            return _framed(b"p", _PART.pack(page or 0, len(named)) + named + text.encode())
        case PageBegun(page):
            return _framed(b"b", _PAGE.pack(page))
        case Digest(value):
            return _framed(b"d", value.encode())
        case Picture(data):
            return _framed(b"i", data)
        case End(state, reason):
            told = reason.encode("utf-8", "replace")[:MOST_REASON]
            return _framed(b"e", bytes((_STATES.index(state),)) + told)


def _framed(sign: bytes, body: bytes) -> bytes:
    return _HEAD.pack(sign, len(body)) + body


class Answers:
    """Answers out of the bytes that come; at most one unfinished frame is held."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Answer]:
        """The answers that are complete with these bytes. Raises `Garbage`."""
        self._held += data
        start = 0
        try:
            while len(self._held) - start >= HEAD:
                sign, length = _HEAD.unpack_from(self._held, start)
                if length > MOST_FRAME:
                    raise Garbage("a frame that is too long")
                end = start + HEAD + length
                if len(self._held) < end:
                    break
                answer = _unpacked(sign, bytes(memoryview(self._held)[start + HEAD : end]))
                start = end
                yield answer
        finally:
            del self._held[:start]


def _unpacked(sign: bytes, body: bytes) -> Answer:
    try:
        match sign:
            case b"p":
                return _part(body)
            case b"b":
                return PageBegun(_PAGE.unpack(body)[0])
            case b"d" if len(body) == _DIGEST:
                return Digest(f"{int(body, 16):0{_DIGEST}x}")
            case b"i":
                return Picture(body)
            case b"e" if len(body) <= MOST_REASON + 1:
                return End(_STATES[body[0]], body[1:].decode("utf-8", "ignore"))
            case _:
                raise Garbage("an unknown sign")
    except (struct.error, ValueError, IndexError) as failure:
        raise Garbage(str(failure)) from None


def _part(body: bytes) -> Part:
    page, length = _PART.unpack_from(body)
    begin = _PART.size + length
    place, text = body[_PART.size : begin].decode(), body[begin:]
    if len(place) > 2 * LONGEST_PLACE or len(text) > MOST_TEXT:
        raise Garbage("a part that is too long")
    return Part(place, text.decode(), page or None)
