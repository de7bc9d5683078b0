"""Secrets that a change of a file adds. Secrets that the file had before belong to whoever wrote them."""

from __future__ import annotations

from typing import Final

from lithos.text.secrets.masking import find_secrets

#: Bytes that are compared at once while the first difference is searched for.
_COMPARED: Final = 4_096
#: Part of the armour of a private key. The lines of a key are found only together with its armour.
_ARMOUR: Final = b"PRIVATE KEY"


def added_secrets(old: bytes, new: bytes) -> list[tuple[int, str]]:
    """Return line and kind of each secret in `new` whose value is not in `old`. Lines count from 1.

    Only the changed lines are examined.
    """
    begin, end = changed_lines(old, new)
    if begin >= end:
        return []
    if _ARMOUR in new:
        begin, end = 0, len(new)
    text = new[begin:end].decode("utf-8", "replace")
    above = new.count(b"\n", 0, begin)
    return [
        (above + text.count("\n", 0, first) + 1, kind)
        for first, last, kind in find_secrets(text)
        if text[first:last].encode() not in old
    ]


def changed_lines(old: bytes, new: bytes) -> tuple[int, int]:
    """Return begin and end of the lines of `new` that differ from `old`."""
    same = _same_bytes(old, new)
    if same == len(new) == len(old):
        return len(new), len(new)
    most = min(len(old), len(new)) - same
    tail = _same_bytes(old[len(old) - most :][::-1], new[len(new) - most :][::-1])
    begin = new.rfind(b"\n", 0, same) + 1
    end = new.find(b"\n", max(begin, len(new) - tail))
    return begin, len(new) if end < 0 else end


def _same_bytes(one: bytes, other: bytes) -> int:
    """Return the number of equal bytes at the beginning of both."""
    most = min(len(one), len(other))
    at = 0
    while at < most and one[at : at + _COMPARED] == other[at : at + _COMPARED]:
        at += _COMPARED
    at, high = min(at, most), min(at + _COMPARED, most)
    while at < high:  # The first difference is at `at` or later, and before `high` or there.
        middle = (at + high + 1) // 2
        if one[at:middle] == other[at:middle]:
            at = middle
        else:
            high = middle - 1
    return at
