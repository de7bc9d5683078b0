"""LZ-String compressor for test drawings, and streams that no compressor writes."""

from __future__ import annotations

from collections.abc import Iterable

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class Codes:
    """Consecutive codes. Each code has the bit width that a reader expects."""

    def __init__(self) -> None:
        self._bits: list[int] = []
        self._width, self._room = 2, 0

    def add(self, code: int, unit: str = "") -> None:
        """Add a code. If the code is 0 or 1, add a unit of 8 or 16 bits after it."""
        self._write(code, self._width)
        if code < 2:
            self._write(ord(unit), 8 << code)
        if self._width == 2:
            self._width, self._room = 3, 4
            return
        for _ in range(1 + (code < 2)):  # a reader adds this number of dictionary entries for the code
            self._room -= 1
            if not self._room:
                self._room, self._width = 1 << self._width, self._width + 1

    def _write(self, value: int, count: int) -> None:
        self._bits += (value >> place & 1 for place in range(count))

    def text(self) -> str:
        """Return all codes in Base64."""
        bits = self._bits + [0] * (-len(self._bits) % 6)
        signs = (ALPHABET[int("".join(map(str, bits[at : at + 6])), 2)] for at in range(0, len(bits), 6))
        return "".join(signs) + "==="


def compress(units: str) -> str:
    """Return the output of `LZString.compressToBase64`. The text has no characters above 16 bits."""
    if not units:
        return "Q==="
    codes, known, count, before, at = Codes(), dict[str, int](), 3, "", 0
    while at < len(units):
        size = 1
        while at + size < len(units) and units[at : at + size + 1] in known:
            size += 1
        entry = units[at : at + size]
        if entry in known:
            codes.add(known[entry])
        else:
            codes.add(int(ord(entry) > 255), entry)
            known[entry], count = count, count + 1
        if before:
            known.setdefault(before + entry[0], count)
            count += 1
        before, at = entry, at + size
    codes.add(2)
    return codes.text()


def of_codes(first: str, codes: Iterable[int]) -> str:
    """Return a stream that begins with a unit, continues with these codes, and has no end code."""
    written = Codes()
    written.add(0, first)
    for code in codes:
        written.add(code)
    return written.text()
