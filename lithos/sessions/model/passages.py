"""The passages of a turn, which are embedded and whose words are compared with a question."""

from __future__ import annotations

from typing import Final

from lithos.sessions.model.session import Turn
from lithos.text.chunk import ChunkSizes

#: Length in characters of a passage. It is half of a note's, because a turn often states one thing in the
#: middle of others. With 500, `bench.sessions` found 36 of 60 facts first by a question in other words, and
#: with 250 it found 55.
LENGTH: Final = 250
#: Maximum number of passages of one turn. Long turns are mostly pasted files and logs, and their beginning
#: says what they are.
MOST_PASSAGES: Final = 16
_SIZES: Final = ChunkSizes(LENGTH)
#: Length in characters of the beginning of a turn that is split into passages.
_BEGINNING: Final = 2 * MOST_PASSAGES * LENGTH


def passages_of(turn: Turn) -> list[str]:
    """Return the passages of a turn's text, then its outputs and names as one passage."""
    chunks = _SIZES.chunks("", turn.text[:_BEGINNING])[:MOST_PASSAGES]
    rest = " ".join((*turn.tools, *turn.files, *turn.outputs))
    return [*(chunk.indexed for chunk in chunks), *([rest] if rest else [])]
