"""LZ-String (`compressToBase64`), as Obsidian's Excalidraw plugin stores drawings.

An LZ78 code over UTF-16 units, its codes of growing width written bit by bit, lowest first. Each dictionary
entry repeats text that was already output, so time and memory are those of the output.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
#: Six bits each, in the order in which they come, which is the reverse of their worth.
_BITS: Final = {sign: int(f"{value:06b}"[::-1], 2) for value, sign in enumerate(_ALPHABET[:64])} | {"=": 0}
#: Codes that stand for a unit of 8 bits, for one of 16, and for the end.
_NARROW, _WIDE, _END = 0, 1, 2


class BadCompression(ValueError):
    """No LZ-String, or less than all of it."""


class TooLarge(ValueError):
    """It would be longer than it may be."""


def decompress(text: str, most: int) -> str:
    """Return the decompressed text;

    white space is skipped. Raises `BadCompression`; `TooLarge` beyond `most`.
    """
    bits = _Bits(text)
    unit = bits.take(2)
    if unit == _END:
        return ""
    if unit not in (_NARROW, _WIDE):
        raise BadCompression("no first unit")
    before = chr(bits.take(8 << unit))
    # Codes 0 to 2 never are entries.
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
    """The bits of a Base64 text, in order."""

    def __init__(self, text: str) -> None:
        self._signs = _signs(text)
        self._held = 0
        self._count = 0

    def take(self, count: int) -> int:
        """Return the next number of `count` bits, the lowest first."""
        while self._count < count:
            bits = next(self._signs, None)
            if bits is None:
                raise BadCompression("it ends too early")
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
            raise BadCompression(f"{sign!r} is not Base64")
