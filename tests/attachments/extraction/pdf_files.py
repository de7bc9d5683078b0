"""PDF test files. They are built from raw objects, so any part can be invalid."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence

#: Padding string that the standard security handler of PDF uses.
_PAD = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def join(objects: Mapping[int, bytes], trailer: bytes = b"/Root 1 0 R") -> bytes:
    """Return a file that contains these numbered objects and their cross-reference table."""
    out, places = bytearray(b"%PDF-1.7\n"), dict[int, int]()
    for number, body in objects.items():
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table, size = len(out), max(objects, default=0) + 1
    out += b"xref\n0 %d\n" % size
    for number in range(size):
        out += b"%010d 00000 n \n" % places[number] if number in places else b"0000000000 65535 f \n"
    out += b"trailer\n<</Size %d%s>>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, table)
    return bytes(out)


def stream(data: bytes, entries: bytes = b"") -> bytes:
    """Return a PDF stream object that contains the data unchanged."""
    return b"<</Length %d%s>>stream\n%s\nendstream" % (len(data), entries, data)


def packed(data: bytes) -> bytes:
    return stream(zlib.compress(data), b"/Filter/FlateDecode")


def content(text: str) -> bytes:
    """Return PDF operators that draw lines of text."""
    lines = (
        b"(%s) Tj T*" % line.translate({40: r"\(", 41: r"\)", 92: r"\\"}).encode("cp1252")
        for line in text.split("\n")
    )
    return b"BT /F1 12 Tf 14 TL 72 720 Td " + b" ".join(lines) + b" ET"


FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"


def document(
    contents: Sequence[bytes],
    *,
    font: bytes = FONT,
    page: bytes = b"",
    extra: Mapping[int, bytes] | None = None,
) -> dict[int, bytes]:
    """Return the objects of a document. Each content stream (see `stream`) gets one page.

    Object 1 is the catalog, 2 the page list, 3 the font `F1`. From 10 on, content and page alternate. Objects
    in `extra` replace others.
    """
    objects = {1: b"<</Type/Catalog/Pages 2 0 R>>", 3: font}
    kids = []
    for place, body in enumerate(contents):
        number = 10 + 2 * place
        objects[number] = body
        objects[number + 1] = (
            b"<</Type/Page/Parent 2 0 R/Contents %d 0 R"
            b"/Resources<</Font<</F1 3 0 R>>/XObject<</X0 4 0 R>>>>%s>>"
            % (number, page or b"/MediaBox[0 0 612 792]")
        )
        kids.append(b"%d 0 R" % (number + 1))
    objects[2] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(kids), b" ".join(kids))
    return objects | dict(extra or {})


def pdf(*texts: str) -> bytes:
    """Return a valid PDF file with one page for each text."""
    return join(document([stream(content(text)) for text in texts]))


def encrypted(text: str, password: bytes, handler: bytes = b"/Standard") -> bytes:
    """Return a page that is encrypted by RC4 with a 40-bit key. The password is needed to read it."""
    owner = _rc4(_md5(_padded(b"owner"))[:5], _padded(password))
    key = _md5(_padded(password) + owner + (-4).to_bytes(4, "little", signed=True) + b"0123456789abcdef")[:5]
    body = _rc4(_md5(key + (10).to_bytes(3, "little") + b"\0\0")[:10], content(text))
    told = [each.hex().encode() for each in (owner, _rc4(key, _PAD))]
    security = b"<</Filter%s/V 1/R 2/P -4/O<%s>/U<%s>>>" % (handler, *told)
    return join(
        document([stream(body)], extra={5: security}),
        b"/Root 1 0 R/Encrypt 5 0 R/ID[<%s><%s>]" % ((b"0123456789abcdef".hex().encode(),) * 2),
    )


def _padded(password: bytes) -> bytes:
    return (password + _PAD)[:32]


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _rc4(key: bytes, data: bytes) -> bytes:
    state, other = list(range(256)), 0
    for place in range(256):
        other = (other + state[place] + key[place % len(key)]) % 256
        state[place], state[other] = state[other], state[place]
    out, other = bytearray(), 0
    for number, byte in enumerate(data, 1):
        place = number % 256
        other = (other + state[place]) % 256
        state[place], state[other] = state[other], state[place]
        out.append(byte ^ state[(state[place] + state[other]) % 256])
    return bytes(out)
