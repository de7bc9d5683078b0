"""Worker that a hostile file controls. The server must not believe its answers."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from typing import Any

from lithos.attachments.files.worker_protocol import (
    LONGEST_LINE,
    Digest,
    End,
    Picture,
    ReadingRequest,
    pack_answer,
)
from lithos.attachments.model.kinds import MOST_TEXT
from lithos.attachments.model.parts import FilePart

DIGEST = pack_answer(Digest("ab" * 32))


def said(body: bytes = b"", **fields: Any) -> bytes:
    return json.dumps({"bytes": len(body), **fields}).encode() + b"\n" + body


def part(text: bytes, place: str = "1", page: Any = None) -> bytes:
    return said(text, place=place, page=page)


LIES = {
    "an endless body": said(place="1", page=None, bytes=0xFFFFFFFF),
    "an endless line": b" " * 100_000,
    "a line that is no JSON": b"?\n",
    "a line that nests": b"[" * 8_000 + b"\n",
    "a line without a length": b'{"begun": 1}\n',
    "a length that is none": said(begun=1, bytes=True),
    "an unknown answer": said(sign="?"),
    "a digest that is none": said(digest="no" * 32),
    "text that is none": part(b"\xed\xa0\x80"),
    "half of a character": part(b"x", place="\ud800"),
    "a place that is too long": part(b"x", "p" * 5_000),
    "a page that cannot be": part(b"x", page=10**50),
    "an unknown end": said(end="well", reason=""),
    "no reason at all": said(end="failed", reason=7),
    "too much text": part(b"x" * (MOST_TEXT // 2)) * 3,
    "too many parts": pack_answer(FilePart("1", "x")) * 3_000,
    "a picture of rubbish": pack_answer(Picture(b"xyz")) + pack_answer(End("whole")),
}


def main(descriptor: int) -> None:
    server = socket.socket(fileno=descriptor)
    while True:
        line, _, _, _ = socket.recv_fds(server, LONGEST_LINE, 1)
        if not line:
            return
        request = ReadingRequest.from_line(line)
        name = "a picture of rubbish" if request.page is not None else request.name
        if name == "nothing":
            time.sleep(600)
        elif name == "busy":
            while True:
                pass
        elif name == "leaves":
            os._exit(3)
        elif name == "hangs up":
            server.close()
            time.sleep(600)
        server.sendall((DIGEST if request.page is None else b"") + LIES[name])


if __name__ == "__main__":
    main(int(sys.argv[1]))
