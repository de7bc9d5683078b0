"""The passages of a turn, which are embedded and whose words are compared with a question."""

from __future__ import annotations

from typing import Final

from lithos.sessions.model.session import Turn
from lithos.text.chunk import ChunkSizes

#: Maximum number of passages of one turn. Long turns are mostly pasted files and logs, and their beginning
#: says what they are.
MOST_PASSAGES: Final = 8
#: Length in characters of a passage, and of the beginning of a turn that is split into passages.
_SIZES: Final = ChunkSizes(500)
_BEGINNING: Final = 2 * MOST_PASSAGES * 500


def passages_of(turn: Turn) -> list[str]:
    """Return the passages of a turn's text, then its outputs and names as one passage."""
    chunks = _SIZES.chunks("", turn.text[:_BEGINNING])[:MOST_PASSAGES]
    rest = " ".join((*turn.tools, *turn.files, *turn.outputs))
    return [*(chunk.indexed for chunk in chunks), *([rest] if rest else [])]
