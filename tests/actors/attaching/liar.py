"""A reader that a hostile file has taken over: says what a server must not believe. Run as the worker is."""

from __future__ import annotations

import os
import socket
import struct
import sys
import time

from lithos.core.attachments.kinds import MOST_TEXT
from lithos.core.attachments.parts import Part
from lithos.stores.attachments.frames import HEAD, End, Extract, pack_answer, request_length, unpack_request

DIGEST = struct.pack(">cI", b"d", 64) + b"ab" * 32


def part(text: bytes, place: bytes = b"1") -> bytes:
    return struct.pack(">cIIH", b"p", 6 + len(place) + len(text), 0, len(place)) + place + text


LIES = {
    "an endless frame": struct.pack(">cI", b"p", 0xFFFFFFFF),
    "an unknown sign": struct.pack(">cI", b"?", 0),
    "a digest that is none": struct.pack(">cI", b"d", 64) + b"no" * 32,
    "text that is none": part(b"\xed\xa0\x80"),
    "a place that is too long": part(b"x", b"p" * 5_000),
    "half a part": struct.pack(">cI", b"p", 2) + b"xx",
    "an unknown end": struct.pack(">cI", b"e", 1) + b"\xee",
    "no end at all": struct.pack(">cI", b"e", 0),
    "too much text": part(b"x" * (MOST_TEXT // 2)) * 3,
    "too many parts": pack_answer(Part("1", "x")) * 3_000,
    "a picture of rubbish": struct.pack(">cI", b"i", 3) + b"xyz" + pack_answer(End("whole")),
}


def main(descriptor: int) -> None:
    server = socket.socket(fileno=descriptor)
    while True:
        head, _, _, _ = socket.recv_fds(server, HEAD, 1)
        if not head:
            return
        request = unpack_request(server.recv(request_length(head)))
        name = request.name if isinstance(request, Extract) else "a picture of rubbish"
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
        server.sendall((DIGEST if isinstance(request, Extract) else b"") + LIES[name])


if __name__ == "__main__":
    main(int(sys.argv[1]))
