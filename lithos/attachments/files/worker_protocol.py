"""Messages between the server and the process that reads files: JSON lines over a socket.

A request is one line, sent with the descriptor of its file. An answer is a short line, followed by `bytes`
bytes of text or image data. A malicious file may take control of the process and send anything, so only short
lines are parsed as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias, get_args

from attrs import asdict, frozen

from lithos.attachments.model.kinds import MOST_PARTS, MOST_TEXT, FileKind
from lithos.attachments.model.parts import LONGEST_PLACE, FilePart

#: Maximum length of a line in bytes.
LONGEST_LINE: Final = 8_192
#: Maximum number of bytes after a line: enough for the longest text of a part and for a page image.
MOST_BODY: Final = 32 * 1024 * 1024
#: Maximum length of a reason in characters.
MOST_REASON: Final = 500
#: Exit status of a process that ran out of memory.
OUT_OF_MEMORY: Final = 86

_DIGEST: Final = re.compile("[0-9a-f]{64}")

State: TypeAlias = Literal["whole", "cut", "failed", "unchanged", "missing"]


class Garbage(Exception):
    """Error: the socket returned an invalid answer."""


@frozen
class ReadingRequest:
    """Request for the text of a file (unless its digest is `known`), or for the image of `page` (from 1)."""

    kind: FileKind = "pdf"
    name: str = ""
    known: str = ""
    page: int | None = None
    #: Width of the image in pixels.
    width: int = 0

    def to_line(self) -> bytes:
        """Return the request line, which is sent with the descriptor of the file."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> ReadingRequest:
        """Parse a request line."""
        return cls(**json.loads(line))


@frozen
class Digest:
    """Answer: the SHA-256 digest of the file's bytes, in hexadecimal digits."""

    value: str


@frozen
class PageBegun:
    """Answer: the process begins to read a page. The time limit of the page starts."""

    page: int


@frozen
class Picture:
    """Answer: a page as a PNG image."""

    data: bytes


@frozen
class End:
    """Last answer, with the reason if the answer is incomplete."""

    state: State
    reason: str = ""


WorkerAnswer: TypeAlias = Digest | PageBegun | FilePart | Picture | End


def pack_answer(answer: WorkerAnswer) -> bytes:
    """Return the bytes of an answer: its line, and the data that follows."""
    body = b""
    fields: dict[str, Any] = {}
    match answer:
        case FilePart(place, text, page):
            fields, body = {"place": place, "page": page}, text.encode()
        case PageBegun(page):
            fields = {"begun": page}
        case Digest(value):
            fields = {"digest": value}
        case Picture(data):
            fields, body = {"picture": True}, data
        case End(state, reason):
            told = reason.encode("utf-8", "replace").decode()[:MOST_REASON]
            fields = {"end": state, "reason": told}
    return json.dumps({**fields, "bytes": len(body)}).encode() + b"\n" + body


class AnswerDecoder:
    """Decoder for received answers. It stores at most one unfinished answer."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[WorkerAnswer]:
        """Return the answers that these bytes complete. Raises `Garbage`."""
        self._held += data
        start = 0
        try:
            while (end := self._held.find(b"\n", start, start + LONGEST_LINE)) >= 0:
                fields = _fields(self._held[start:end])
                stop = end + 1 + fields["bytes"]
                if len(self._held) < stop:
                    return
                answer = _answer(fields, bytes(memoryview(self._held)[end + 1 : stop]))
                start = stop
                yield answer
            if len(self._held) - start >= LONGEST_LINE:
                raise Garbage("a line that is too long")
        finally:
            del self._held[:start]


def _fields(line: bytearray) -> dict[str, Any]:
    try:
        fields: Any = json.loads(line)
    except (ValueError, RecursionError) as failure:
        raise Garbage(str(failure)) from None
    size = fields.get("bytes") if isinstance(fields, dict) else None
    if type(size) is not int or not 0 <= size <= MOST_BODY:
        raise Garbage("a line without a valid length")
    return dict(fields)


def _is_page(page: Any) -> bool:
    return type(page) is int and 1 <= page <= MOST_PARTS


def _answer(fields: dict[str, Any], body: bytes) -> WorkerAnswer:
    try:
        match fields:
            case {"place": str(place), "page": page} if page is None or _is_page(page):
                text = body.decode()
                if len(place.encode()) <= 4 * LONGEST_PLACE and len(text) <= MOST_TEXT:
                    return FilePart(place, text, page)
            case {"begun": page} if _is_page(page):
                return PageBegun(page)
            case {"digest": str(value)} if _DIGEST.fullmatch(value):
                return Digest(value)
            case {"picture": True}:
                return Picture(body)
            case {"end": state, "reason": str(reason)} if state in get_args(State):
                if len(reason.encode()) <= 4 * MOST_REASON:
                    return End(state, reason)
    except ValueError as failure:  # a lone surrogate, or bytes that are not UTF-8
        raise Garbage(str(failure)) from None
    raise Garbage("an invalid answer")
