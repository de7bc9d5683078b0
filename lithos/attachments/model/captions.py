"""The text around each embed or link of a file in a note."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from lithos.kernel.values.graphemes import beginning

#: Maximum number of characters: before and after each link, and for all links together.
AROUND: Final = 300
MOST: Final = 2_000
#: Maximum number of links to use in one note.
PLACES: Final = 5


def around(content: str, name: str) -> str:
    """Return the text around each mention of a file in a note: one paragraph before and one after it.

    The name is found as written, or with spaces and other characters escaped as in URLs (`%20`).
    """
    told: list[str] = []
    lowered = content.casefold() if len(content.casefold()) == len(content) else content
    for spelling in dict.fromkeys((name.casefold(), quote(name).casefold())):
        start = 0
        while len(told) < PLACES and (place := lowered.find(spelling, start)) >= 0:
            start = place + len(spelling)
            told.append(_paragraphs(content, place, start))
    return beginning("\n".join(told), MOST)


def _paragraphs(content: str, begin: int, end: int) -> str:
    before = content[max(0, begin - AROUND) : begin]
    behind = content[end : end + AROUND]
    # Text beyond the second paragraph break is probably about another topic.
    before = "\n\n".join(before.split("\n\n")[-2:])
    behind = "\n\n".join(behind.split("\n\n")[:2])
    return f"{before} {behind}".replace("![[", " ").replace("]]", " ").strip()
