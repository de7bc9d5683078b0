"""Conversations as Markdown: one heading per message, with role and time. Long conversations are split."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any, Final

from attrs import field, frozen

from lithos.kernel.values.graphemes import whole
from lithos.text.markdown import code_fences
from lithos.text.pieces import line_pieces, matches_in_lines

_HEADING: Final = re.compile(r"^ {0,3}(#{1,6})(?=[ \t])", re.MULTILINE)
_TICKS: Final = re.compile(r"`{3,}", re.MULTILINE)
_FENCE: Final = re.compile(r"`{3,}|~{3,}")
_INFO: Final = re.compile(r"[^\w+#.-]")
_NOT_LINKED: Final = str.maketrans("[]|#^\n", "()/-- ")
#: Number of levels by which headings inside messages are lowered.
_LOWERED: Final = 2
#: Number of bytes reserved in each part for the links to other parts.
_MARGIN: Final = 4_096


@frozen
class Message:
    """One visible message: its author, time, and text as Markdown."""

    role: str
    text: str
    at: datetime | None = None


@frozen(kw_only=True)
class Conversation:
    """One conversation of an export. `branches` and `hidden` count the content that is not imported.

    `branches` is the number of branches that are left out, and `hidden` is the number of their messages.
    """

    id: str
    title: str
    messages: tuple[Message, ...]
    created_at: datetime | None = None
    updated_at: datetime | None = None
    model: str | None = None
    branches: int = 0
    hidden: int = 0
    remarks: tuple[str, ...] = ()
    properties: dict[str, Any] = field(factory=dict)


def fence(text: str, info: str = "") -> str:
    """Return `text` as a code block. Its fence is longer than any fence in the text."""
    longest = max((len(found[0]) for found in matches_in_lines(_TICKS, text, 0)), default=2)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{_INFO.sub('', info[:40])}\n{text.rstrip()}\n{ticks}"


def nest(text: str) -> str:
    """Return a message for use below its heading: headings are lowered, and an open code block is closed."""
    text = text.strip("\n")
    if "#" not in text and "```" not in text and "~~~" not in text:
        return text
    parts: list[str] = []
    done = 0
    # The added paragraph shows whether the last code block is still open.
    probe = text + "\n\n."
    closing = ""
    for start, end in code_fences(probe):
        parts.append(_lower(text[done:start]))
        parts.append(text[start:end])
        if end == len(probe):
            opened = _FENCE.search(text, start)
            closing = "\n" + (opened[0] if opened else "```")
        done = min(end, len(text))
    parts.append(_lower(text[done:]))
    return "".join(parts) + closing


def _lower(text: str) -> str:
    if "#" not in text:
        return text
    parts: list[str] = []
    done = 0
    for found in matches_in_lines(_HEADING, text, 0):
        parts.append(text[done : found.start(1)])
        parts.append("#" * min(6, len(found[1]) + _LOWERED))
        done = found.end(1)
    return "".join([*parts, text[done:]])


def linkable(title: str) -> str:
    """Return a title without the characters that a wiki-link cannot contain."""
    return " ".join(title.translate(_NOT_LINKED).split())


def blocks_of(conversation: Conversation) -> Iterator[str]:
    """Yield the Markdown of a conversation in blocks. A block should not be split between notes."""
    intro = list(conversation.remarks)
    if conversation.hidden:
        intro.append(
            "*This note shows the branch that was open last; "
            f"{_count(conversation.hidden, 'message')} on "
            f"{_count(conversation.branches, 'other branch', 'other branches')} "
            f"{'is' if conversation.hidden == 1 else 'are'} left out.*"
        )
    if intro:
        yield "\n\n".join(intro)
    for message in conversation.messages:
        at = f", {message.at:%Y-%m-%d %H:%M} UTC" if message.at else ""
        yield f"## {message.role}{at}\n\n{nest(message.text)}".rstrip()


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def split_blocks(blocks: Iterable[str], most_bytes: int, joint: str = "\n\n") -> Iterator[str]:
    """Join the blocks with `joint` to texts of at most `most_bytes` UTF-8 bytes, minus a reserve.

    Yields at least one text. A block that is too long is split between lines if possible, otherwise between
    words or anywhere.
    """
    most = max(most_bytes - _MARGIN, 64)
    part: list[str] = []
    size = 0
    for block in _fitting(blocks, most):
        length = len(block.encode("utf-8", "replace")) + 2
        if part and size + length > most:
            yield joint.join(part)
            part, size = [], 0
        part.append(block)
        size += length
    yield joint.join(part)


def _fitting(blocks: Iterable[str], most: int) -> Iterator[str]:
    for block in blocks:
        if 4 * len(block) + 2 <= most or len(block.encode("utf-8", "replace")) + 2 <= most:
            yield block
        else:
            yield from _cut(block, most)


def _cut(block: str, most: int) -> Iterator[str]:
    """Split a block into pieces. If a code block is split, each piece is a code block."""
    first, _, _ = block.partition("\n")
    title = f"{first} (continued)" if first.startswith("## ") else ""
    opening = ""
    pending: list[str] = []
    size = 0
    for piece in _small_pieces(block, max(most // 8, 16)):
        length = len(piece.encode("utf-8", "replace"))
        if pending and size + length + len(opening) + len(title.encode()) + 32 > most:
            text = "".join(pending)
            opening = _open_fence(text)
            yield text.rstrip("\n") + (f"\n{_FENCE.match(opening)[0]}" if opening else "")  # type: ignore[index]
            pending = [f"{title}\n\n"] if title else []
            pending += [f"{opening}\n"] if opening else []
            size = sum(len(each.encode("utf-8", "replace")) for each in pending)
        pending.append(piece)
        size += length
    yield "".join(pending)


def _small_pieces(text: str, most: int) -> Iterator[str]:
    """Yield the lines of a text, with at most `most` bytes each.

    Longer lines are split, after a space if possible.
    """
    most = max(most // 4, 4)
    for start, end in line_pieces(text, 0, len(text), keeps=""):
        for line in text[start:end].splitlines(keepends=True):
            at = 0
            while len(line) - at > most:
                stop = line.rfind(" ", at, at + most) + 1 or whole(line, at + most, at)
                yield line[at:stop]
                at = stop
            yield line[at:]


def _open_fence(text: str) -> str:
    """Return the line that opens an unclosed code block. Return "" if no code block is open."""
    probe = text + "\n\n."
    for start, end in code_fences(probe):
        if end == len(probe):
            found = _FENCE.search(text, start)
            return text[found.start() :].partition("\n")[0] if found else ""
    return ""


@frozen
class ConversationPart:
    """One note of a conversation: its number (from 1), the number of parts, its title and its text.

    `said` is the text without the links to the preceding and next part.
    """

    number: int
    count: int
    title: str
    said: str
    text: str


def parts_of(
    blocks: Callable[[], Iterable[str]], title: str, most_bytes: int, joint: str = "\n\n"
) -> Iterator[ConversationPart]:
    """Yield the parts of a conversation, with links to the preceding and next part.

    `blocks` is called up to three times, so that the blocks need not all be in memory. Each call must return
    the same blocks.
    """
    few = list(islice(split_blocks(blocks(), most_bytes, joint), 2))
    if len(few) == 1:
        yield ConversationPart(1, 1, title, few[0], few[0])
        return
    count = sum(1 for _ in split_blocks(blocks(), most_bytes, joint))
    name = linkable(title) or "Conversation"
    for number, said in enumerate(split_blocks(blocks(), most_bytes, joint), 1):
        before = f"*Continues [[{part_title(name, number - 1)}]].*\n\n" if number > 1 else ""
        behind = f"\n\n*Continued in [[{part_title(name, number + 1)}]].*" if number < count else ""
        yield ConversationPart(number, count, part_title(name, number), said, f"{before}{said}{behind}")


def part_title(name: str, number: int) -> str:
    """Return `name` for the first part, then `name (part 2)` and so on."""
    return name if number == 1 else f"{name} (part {number})"
