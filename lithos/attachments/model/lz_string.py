"""Decompression of LZ-String (`compressToBase64`), which Obsidian's Excalidraw plugin uses.

LZ-String is an LZ78 code over UTF-16 units. The bit width of its codes grows, and the lowest bit of a code is
written first. Each dictionary entry repeats earlier output, so time and memory are proportional to the
output.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
#: Six bits per Base64 character, reversed because the lowest bit comes first in the stream.
_BITS: Final = {sign: int(f"{value:06b}"[::-1], 2) for value, sign in enumerate(_ALPHABET[:64])} | {"=": 0}
#: Codes that announce a unit of 8 bits, a unit of 16 bits, and the end.
_NARROW, _WIDE, _END = 0, 1, 2


class BadCompression(ValueError):
    """Error: the text is not LZ-String, or it is incomplete."""


class TooLarge(ValueError):
    """Error: the decompressed text would exceed its limit."""


def decompress(text: str, most: int) -> str:
    """Return the decompressed text.

    White space is skipped. Raises `BadCompression`, or `TooLarge` if the result exceeds `most` characters.
    """
    bits = _Bits(text)
    unit = bits.take(2)
    if unit == _END:
        return ""
    if unit not in (_NARROW, _WIDE):
        raise BadCompression("the first unit is missing")
    before = chr(bits.take(8 << unit))
    # The codes 0 to 2 never refer to dictionary entries.
    entries = ["", "", "", before]
    out, length = [before], 1
    width, room = 3, 4
    while (code := bits.take(width)) != _END:
        if code in (_NARROW, _WIDE):
            entries.append(chr(bits.take(8 << code)))
            code = len(entries) - 1
            room -= 1
            if not room:
                room, width = 1 << width, width + 1
        if code < len(entries):
            entry = entries[code]
        elif code == len(entries):
            entry = before + before[0]
        else:
            raise BadCompression("an unknown code")
        length += len(entry)
        if length > most:
            raise TooLarge(f"more than {most} characters")
        out.append(entry)
        entries.append(before + entry[0])
        before = entry
        room -= 1
        if not room:
            room, width = 1 << width, width + 1
    return "".join(out)


class _Bits:
    """Reader for the bits of a Base64 text."""

    def __init__(self, text: str) -> None:
        self._signs = _signs(text)
        self._held = 0
        self._count = 0

    def take(self, count: int) -> int:
        """Return the next `count` bits as a number. The first bit read is the lowest."""
        while self._count < count:
            bits = next(self._signs, None)
            if bits is None:
                raise BadCompression("the text ends too early")
            self._held |= bits << self._count
            self._count += 6
        taken = self._held & ((1 << count) - 1)
        self._held >>= count
        self._count -= count
        return taken


def _signs(text: str) -> Iterator[int]:
    for sign in text:
        bits = _BITS.get(sign)
        if bits is not None:
            yield bits
        elif not sign.isspace():
            raise BadCompression(f"{sign!r} is not a Base64 character")
