"""The text around each place where a note shows a file."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

#: Maximum number of characters before and after each place, and of all places together.
AROUND: Final = 300
MOST: Final = 2_000
#: Maximum number of places in one note.
PLACES: Final = 5


def around(content: str, name: str) -> str:
    """Return the text around the places where a note names a file: one paragraph before and after each.

    The name is found as it is written, or with escaped spaces and other characters as in URLs (`%20`).
    """
    told: list[str] = []
    lowered = content.casefold() if len(content.casefold()) == len(content) else content
    for spelling in dict.fromkeys((name.casefold(), quote(name).casefold())):
        start = 0
        while len(told) < PLACES and (place := lowered.find(spelling, start)) >= 0:
            start = place + len(spelling)
            told.append(_paragraphs(content, place, start))
    return "\n".join(told)[:MOST]


def _paragraphs(content: str, begin: int, end: int) -> str:
    before = content[max(0, begin - AROUND) : begin]
    behind = content[end : end + AROUND]
    # After a second paragraph break, the text is about another topic.
    before = "\n\n".join(before.split("\n\n")[-2:])
    behind = "\n\n".join(behind.split("\n\n")[:2])
    return f"{before} {behind}".replace("![[", " ").replace("]]", " ").strip()
