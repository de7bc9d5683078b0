"""Texts that are safe to print; it loads at once, for commands that must end at once."""

from __future__ import annotations


def make_printable(text: str) -> str:
    """The text with what could steer a terminal written as an escape sequence."""
    return "".join(char if char.isprintable() or char == "\t" else _escape(char) for char in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()
