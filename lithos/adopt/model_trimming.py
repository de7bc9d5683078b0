"""The plan of a trimming: which blocks of an index move to a topic file so that a client loads the rest."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from attrs import frozen

from lithos.adopt.model_clients import MemoryClient
from lithos.text.markdown import code_fences

#: Share of the limits that a trimmed index may fill, so that the next lines do not trim it again.
ROOM: Final = 0.9
#: Name of the topic file for the moved lines, without suffix, and maximum size of one such file in bytes.
TOPIC: Final = "older-entries"
LARGEST_TOPIC: Final = 200_000
_HEADING: Final = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_INDENTED: Final = re.compile(r"[ \t]")


@frozen
class Block:
    """A line of an index with its indented continuation lines. `start` and `end` are line numbers."""

    start: int
    end: int
    text: str


@frozen
class Trimming:
    """The index after the trimming, and the texts that move to a topic file, with their number of lines."""

    content: str
    moved: tuple[str, ...]
    lines: int


#: Function that returns how often agents read the notes that a block links to, and how many versions ago the
#: block was added.
Use = Callable[[Block], tuple[int, int]]


def link_to(topic: str, client: MemoryClient) -> str:
    """Return the line of an index that leads to the moved lines."""
    return f"- [Older entries]({topic}.md): moved here so that {client.title} loads the rest of this file"


def blocks_of(content: str) -> list[Block]:
    """Return the blocks that may move. Headings, empty lines, code and links to moved lines stay."""
    lines = content.split("\n")
    fenced = _fenced_lines(content)
    found = list[Block]()
    number = 0
    while number < len(lines):
        start = number
        number += 1
        line = lines[start]
        if not line.strip() or start in fenced or _HEADING.match(line) or f"]({TOPIC}" in line:
            continue
        while number < len(lines) and _INDENTED.match(lines[number]) and lines[number].strip():
            number += 1
        found.append(Block(start, number, "\n".join(lines[start:number])))
    return found


def _fenced_lines(content: str) -> set[int]:
    return {
        number
        for start, end in code_fences(content)
        for number in range(content.count("\n", 0, start), content.count("\n", 0, end) + 1)
    }


def plan_trimming(
    content: str, around: bytes, client: MemoryClient, topic: str, use_of: Use
) -> Trimming | None:
    """Return the trimmed index, or None if nothing has to move or can move.

    `content` is the text of the note, and `around` the rest of the file: frontmatter, title and final line
    break. The blocks that agents read least move first, of these the oldest, and of these the last.
    """
    if not client.excess(around + content.encode()):
        return None
    lines = content.split("\n")
    link = "" if f"]({topic}.md)" in content else link_to(topic, client)
    most_bytes = int(client.most_bytes * ROOM) - len(around) - len(link.encode()) - 1
    most_lines = len(lines)
    if client.most_lines is not None:
        most_lines = int(client.most_lines * ROOM) - around.count(b"\n") - 1
    ranked = sorted(
        ((*_rank(use_of(block)), -block.start, block) for block in blocks_of(content)),
        key=lambda each: each[:3],
    )
    left_bytes, left_lines = len(content.encode()), len(lines)
    gone = list[Block]()
    for *_, block in ranked:
        if left_bytes <= most_bytes and left_lines <= most_lines:
            break
        gone.append(block)
        left_bytes -= len(block.text.encode()) + 1
        left_lines -= block.end - block.start
    if not gone:
        return None
    gone.sort(key=lambda block: block.start)
    kept = _without(lines, gone)
    text = "\n".join([*kept, link] if link else kept)
    moved = tuple(block.text for block in gone)
    return Trimming(text, moved, sum(block.end - block.start for block in gone))


def _rank(use: tuple[int, int]) -> tuple[int, int]:
    reads, age = use
    return reads, -age


def _without(lines: Sequence[str], gone: Iterable[Block]) -> list[str]:
    numbers = {number for block in gone for number in range(block.start, block.end)}
    return [line for number, line in enumerate(lines) if number not in numbers]
