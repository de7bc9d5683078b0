"""Division of passages into blocks: paragraphs of a text, or turns of a conversation.

A compact briefing selects blocks, so that one turn of a conversation is shown without five unrelated turns. A
block ends at a blank line, or before a line that begins with a speaker's name. Passages with fenced code are
not divided.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from attrs import evolve

from lithos.memory.briefing.passages import MOST_PASSAGES, Passage, SplitNote
from lithos.text.hidden_text import HIDDEN

#: Speaker name at the beginning of a line: `Ann:`, `**Ann**:`, `[13:35] Ann Lee (she):`.
SPEAKER: Final = re.compile(
    r"[ \t>*_-]{0,8}(?:[\[(][^\])\n]{1,30}[\])] ?)?[*_]{0,2}[^\W\d_][\w.'’-]{0,30}(?: [\w.'’-]{1,30}){0,3}"
    r"(?: ?[\[(][^\])\n]{1,30}[\])])?[*_]{0,2}:(?=[*_]{0,2}\s)"
)
_BREAK: Final = re.compile(r"(?P<blank>\n[ \t\x00]*\n\s*)|\n(?=\S)")
#: White space, and the placeholder for hidden characters.
_BLANK: Final = f" \t\r\n{HIDDEN}"


def cut_blocks(split: SplitNote) -> SplitNote:
    """Return the note with its passages divided into blocks.

    The duration is linear in the length of the note.
    """
    passages: list[Passage] = []
    for passage in split.passages:
        passages += _blocks(split.content, passage)
        if len(passages) >= MOST_PASSAGES:
            break
    return split if len(passages) == len(split.passages) else evolve(split, passages=passages[:MOST_PASSAGES])


def _blocks(content: str, passage: Passage) -> list[Passage]:
    text = content[passage.start : passage.end]
    if "\n" not in text or "```" in text or "~~~" in text:
        return [passage]
    starts = [0, *_starts(text)]
    ends = [*starts[1:], len(text)]
    return [
        evolve(
            passage,
            start=passage.start + start,
            end=passage.start + start + len(text[start:end].rstrip(_BLANK)),
        )
        for start, end in zip(starts, ends, strict=True)
    ]


def _starts(text: str) -> Iterator[int]:
    """Yield the positions in a text at which another block starts.

    A block without letters or digits is joined to the previous block.
    """
    found = [each for each in _BREAK.finditer(text) if each["blank"] or SPEAKER.match(text, each.end())]
    ends = [*(each.start() for each in found[1:]), len(text)]
    before, has_begun = 0, False
    for each, end in zip(found, ends, strict=False):
        has_begun = has_begun or _says_something(text[before : each.start()])
        before = each.start()
        if has_begun and _says_something(text[each.end() : end]):
            yield each.end()


def _says_something(text: str) -> bool:
    return any(map(str.isalnum, text))
