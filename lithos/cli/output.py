"""Printing: one JSON document, or text for a person."""

from __future__ import annotations

import json
import sys
from typing import Any


def print_json(document: Any) -> None:
    """One JSON document on one line of stdout, whatever its encoding is."""
    is_narrow = "utf" not in (sys.stdout.encoding or "").lower()
    json.dump(document, sys.stdout, ensure_ascii=is_narrow)
    sys.stdout.write("\n")
    sys.stdout.flush()


def print_line(text: str) -> None:
    """One line; what a note contains can neither steer the terminal nor fail to be encoded."""
    encoding = sys.stdout.encoding or "utf-8"
    print(make_printable(text).encode(encoding, "backslashreplace").decode(encoding))


def make_printable(text: str) -> str:
    """The text with what could steer a terminal written as an escape sequence."""
    return "".join(char if char.isprintable() or char == "\t" else _escape(char) for char in text)


def print_pairs(title: str, pairs: dict[str, Any]) -> None:
    """A heading and aligned values."""
    print_line(title)
    width = max(map(len, pairs), default=0) + 1
    for name, value in pairs.items():
        print_line(f"  {name + ':':<{width}} {value}")


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()
